"""One figure, one time axis: all lanes under each other, with the phases, the faults and the recorder's blind times."""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

from harness.history.tables import FaultStage
from harness.report.lanes import Lane, end_ns, lanes, seconds
from harness.report.traces import GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, Figure, Json, plain

if TYPE_CHECKING:
    from harness.history.reader import History

_BANDS = (VERMILION, ORANGE, SKY, GREEN)
_OVER = frozenset({FaultStage.ENDED, FaultStage.HEALED, FaultStage.FAILED})
_UNIT_PX = 92
_HEADING_PX = 24
_TOP_PX, _BOTTOM_PX = 74, 48
BANDS = 40
"""At most so many faults, and blind times, are drawn; a long run may have had hundreds."""


def timeline(history: History, limits: dict[str, float]) -> Figure:
    """``limits`` are drawn as lines where a lane has one of them."""
    shown = lanes(history, limits)
    layout = _layout(history, shown)
    data = [
        trace | {"yaxis": _axis(number)} | ({"stackgroup": f"g{number}"} if "stackgroup" in trace else {})
        for number, lane in enumerate(shown, 1)
        for trace in lane.traces
    ]
    return {"data": data, "layout": layout}


def _axis(number: int) -> str:
    return "y" if number == 1 else f"y{number}"


def _layout(history: History, shown: list[Lane]) -> Json:
    scale = history.run.time_scale
    end = seconds(history, end_ns(history))
    inner_px = sum(_HEADING_PX + lane.height * _UNIT_PX for lane in shown)
    layout: Json = {
        "height": round(inner_px + _TOP_PX + _BOTTOM_PX), "hovermode": "closest", "showlegend": False,
        "margin": {"l": 52, "r": 12, "t": _TOP_PX, "b": _BOTTOM_PX},
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 12},
        "xaxis": {
            "range": [0, end], "anchor": _axis(len(shown)), "showgrid": True, "zeroline": False,
            "title": {
                "text": f"scenario seconds since the load began ({scale:g} = 1 s of clock)", "font": {"size": 12},
            },
            "showspikes": True, "spikemode": "across", "spikethickness": 1, "spikecolor": GREY, "spikedash": "dot",
        },
    }  # fmt: skip
    annotations: list[Json] = []
    shapes: list[Json] = []
    used_px = 0.0
    for number, lane in enumerate(shown, 1):
        top = 1 - (used_px + _HEADING_PX) / inner_px
        used_px += _HEADING_PX + lane.height * _UNIT_PX
        axis: Json = {
            "domain": [max(0.0, 1 - used_px / inner_px), top], "anchor": "x", "zeroline": False,
            "rangemode": "tozero", "automargin": True, "fixedrange": True, "nticks": 5,
        }  # fmt: skip
        if lane.logarithmic:
            axis |= {"type": "log", "rangemode": "normal", "nticks": 4}
        elif not any("stackgroup" in trace for trace in lane.traces):
            # A level at the very top of its lane would hide behind the edge.
            most = max((y for trace in lane.traces for y in trace["y"]), default=0)
            least = min((y for trace in lane.traces for y in trace["y"]), default=0)
            axis["range"] = [min(0, least - 0.5), most * 1.06 + (1 if most < 20 else 0)]
        layout["yaxis" if number == 1 else f"yaxis{number}"] = axis
        annotations.append(_heading(lane, top))
        if lane.limit is not None:
            shapes.append(_limit_line(lane.limit, _axis(number)))
    shapes += [*_fault_shapes(history, end), *_blind_shapes(history), *_phase_shapes(history)]
    annotations += [*_phase_names(history), *_fault_names(history, end)]
    return layout | {"shapes": shapes, "annotations": annotations}


def _heading(lane: Lane, y: float) -> Json:
    words = ", ".join(f'<span style="color:{colour}">■ {word}</span>' for word, colour in lane.words)
    note = f" <i>({lane.note})</i>" if lane.note else ""
    return {
        "text": f"<b>{lane.title}</b>: {words}{note}", "xref": "paper", "x": 0, "xanchor": "left", "yref": "paper",
        "y": y, "yanchor": "bottom", "showarrow": False, "font": {"size": 12}, "name": "heading",
    }  # fmt: skip


def _limit_line(value: float, axis: str) -> Json:
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": axis, "y0": value, "y1": value,
        "line": {"color": VERMILION, "width": 1, "dash": "dash"},
    }  # fmt: skip


def fault_spans(history: History) -> list[tuple[str, int, int | None, bool]]:
    """(fault, first effect, end of its own course, disruptive) of every injected fault."""
    spans: dict[str, tuple[int, int | None, bool]] = {}
    for event in history.faults:
        if event.stage is FaultStage.INJECTED:
            spans.setdefault(event.fault_id, (event.t_ns, None, event.disruptive))
        elif event.stage in _OVER and event.fault_id in spans and spans[event.fault_id][1] is None:
            start, _, disruptive = spans[event.fault_id]
            spans[event.fault_id] = (start, event.t_ns, disruptive)
    return [(fault_id, *span) for fault_id, span in spans.items()]


def _colours(history: History) -> list[str]:
    """A colour of its own for each disruptive fault; arrivals by plan and the like share one."""
    bands = cycle(_BANDS)
    return [next(bands) if disruptive else PURPLE for *_, disruptive in fault_spans(history)]


def _fault_shapes(history: History, end: float) -> list[Json]:
    shapes: list[Json] = []
    for (_, start, over, disruptive), colour in list(zip(fault_spans(history), _colours(history), strict=True))[:BANDS]:
        x0 = seconds(history, start)
        x1 = (end if over is None else seconds(history, over)) if disruptive else x0
        shapes.append(
            {
                "type": "rect" if disruptive else "line", "xref": "x", "x0": x0, "x1": x1, "yref": "paper",
                "y0": 0, "y1": 1, "fillcolor": colour, "opacity": 0.14 if disruptive else 0.8, "layer": "below",
                "line": {"width": 0 if disruptive else 2, "color": colour, "dash": "dash"},
            }
        )  # fmt: skip
    return shapes


def _blind_shapes(history: History) -> list[Json]:
    """Where the recorder saw nothing of some kind: absence proves nothing there."""
    spans = sorted({(gap.since_ns or 0, gap.t_ns) for gap in history.gaps})[:BANDS]
    return [
        {
            "type": "rect", "xref": "x", "x0": seconds(history, since), "x1": seconds(history, until), "yref": "paper",
            "y0": 0, "y1": 1, "fillcolor": GREY, "opacity": 0.3, "layer": "above", "line": {"width": 0},
        }
        for since, until in spans
    ]  # fmt: skip


def _fault_names(history: History, end: float) -> list[Json]:
    spans = fault_spans(history)[:BANDS]
    if len(spans) > 8:  # names would lie upon each other; the table of faults has them all
        return []
    names: list[Json] = []
    for number, ((fault_id, start, _, _), colour) in enumerate(zip(spans, _colours(history), strict=False)):
        x = seconds(history, start)
        names.append(
            {
                "text": plain(fault_id), "xref": "x", "x": x, "xanchor": "right" if x > end * 0.6 else "left",
                "yref": "paper", "y": 1.0, "yanchor": "bottom", "yshift": 4 + 13 * (number % 2), "showarrow": False,
                "font": {"size": 11, "color": colour},
            }
        )  # fmt: skip
    return names


def _phase_shapes(history: History) -> list[Json]:
    return [
        {
            "type": "line", "xref": "x", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1,
            "line": {"color": GREY, "width": 1, "dash": "dot"},
        }
        for phase in history.phases[1:]
        for x in [seconds(history, phase.start_ns)]
    ]  # fmt: skip


def _phase_names(history: History) -> list[Json]:
    style = {"xref": "x", "xanchor": "center", "yref": "paper", "y": 1.0, "yanchor": "bottom", "yshift": 32}
    return [
        {
            "text": phase.name.replace("_", " "),
            "x": (seconds(history, phase.start_ns) + seconds(history, phase.end_ns)) / 2,
            "showarrow": False,
            "font": {"size": 11, "color": GREY},
            **style,
        }
        for phase in history.phases
    ]
