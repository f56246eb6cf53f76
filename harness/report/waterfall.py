"""Where the time of each replica went until its first token: one bar per replica, a part per stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.checks.units import scenario_s
from harness.history.replica_sets import Origin
from harness.history.scaleup import STAGES, Replica
from harness.report.content import STAGE_WORDS
from harness.report.traces import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, YELLOW, Figure, plain

if TYPE_CHECKING:
    from harness.history.reader import History

REPLICAS = 30
"""The slowest so many; a long run may have had thousands."""
COLOURS = {
    "T0'": GREY, "T1": PURPLE, "T2": YELLOW, "T3": SKY, "T4": BLUE, "T5": GREEN, "T6": ORANGE, "T7": VERMILION,
    "T8": "#8C6BB1",
}  # fmt: skip
_BAR_PX, _FRAME_PX = 26, 130


def waterfall(history: History, came: Sequence[Replica]) -> Figure | None:
    """None where no replica has two marks."""
    shown = sorted((r for r in came if _known(r)), key=lambda r: -_known(r)[-1][1])[:REPLICAS]
    if not shown:
        return None
    names = [_name(replica) for replica in shown]
    data = []
    for stage, colour in COLOURS.items():
        parts = [(i, *part) for i, replica in enumerate(shown) if (part := _part(history, replica, stage))]
        if parts:
            data.append(
                {
                    "type": "bar", "orientation": "h", "name": f"{stage} {STAGE_WORDS[stage]}",
                    "y": [names[i] for i, *_ in parts], "base": [base for _, base, _ in parts],
                    "x": [length for *_, length in parts], "text": [stage] * len(parts), "textposition": "inside",
                    "insidetextanchor": "middle", "marker": {"color": colour, "line": {"width": 1, "color": "#fff"}},
                    "hovertemplate": f"%{{y}}: {stage} {STAGE_WORDS[stage]} after %{{x:.1f}} s<extra></extra>",
                }
            )  # fmt: skip
    layout = {
        "barmode": "overlay", "height": _FRAME_PX + _BAR_PX * len(shown), "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)", "font": {"family": "system-ui, sans-serif", "size": 12},
        "margin": {"l": 10, "r": 12, "t": 8, "b": 44}, "uniformtext": {"minsize": 9, "mode": "hide"},
        "xaxis": {"title": {"text": "scenario seconds", "font": {"size": 12}}, "rangemode": "tozero"},
        "yaxis": {"automargin": True, "autorange": "reversed", "fixedrange": True, "categoryorder": "array",
                  "categoryarray": names},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
    }  # fmt: skip
    return {"data": data, "layout": layout}


def _name(replica: Replica) -> str:
    return plain(replica.pod or "no pod", 60) + (" (replaces)" if replica.origin is Origin.REPLACEMENT else "")


def _known(replica: Replica) -> list[tuple[str, int]]:
    """Marks with a time, as (stage, nanoseconds since the replica's clock started)."""
    if replica.start_ns is None:
        return []
    found = [(name, t - replica.start_ns) for name in STAGES[1:] if (t := replica.marks[name].t_ns) is not None]
    return sorted(found, key=lambda known: known[1])


def _part(history: History, replica: Replica, stage: str) -> tuple[float, float] | None:
    """Where its bar begins, at the mark before, and how long it is."""
    before = 0
    for name, since in _known(replica):
        if name == stage:
            scale = history.run.time_scale
            return round(scenario_s(before, scale), 2), round(scenario_s(since - before, scale), 2)
        before = since
    return None
