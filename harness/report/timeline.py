"""One figure, one time axis: offered and served rate, TTFT, replicas, nodes, waiting requests, phases and faults.

The figure is built as plain data in plotly's own format, since importing plotly's classes costs more than drawing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

from harness.checks.rows import Request, rows_of
from harness.checks.units import NS_PER_S, scenario_s
from harness.history.autoscaler import METRICS_SOURCE
from harness.history.lives import Json, Life, going, lives, owner_of, ready, terminal, workload_pods
from harness.history.tables import FaultStage

if TYPE_CHECKING:
    from harness.history.reader import History

Figure = dict[str, Any]

# Okabe and Ito's colours, told apart by people who do not see red and green as others do.
BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#6B7280",
)  # fmt: skip
_BANDS = (VERMILION, ORANGE, SKY, GREEN)
_OVER = frozenset({FaultStage.ENDED, FaultStage.HEALED, FaultStage.FAILED})

_PANELS = (
    ("rate", 0.22), ("ttft", 0.26), ("replicas", 0.17), ("nodes", 0.13), ("waiting", 0.14),
)  # fmt: skip
_GAP = 0.02


def timeline(history: History, limits: dict[str, float]) -> Figure:
    """``limits`` are drawn as lines where a panel has one of them."""
    table = rows_of(history)
    data = [
        *_rates(history, table),
        *_ttft(history, table),
        *_replicas(history),
        *_nodes(history),
        *_waiting(history),
    ]
    return {"data": data, "layout": _layout(history, table, limits, data)}


def seconds(history: History, t_ns: int) -> float:
    """The x axis: scenario seconds since the load began."""
    return round(scenario_s(t_ns - history.run.load_start_ns, history.run.time_scale), 3)


def _end_ns(history: History, table: Sequence[Request]) -> int:
    ends = [row.end_ns for row in table if row.end_ns is not None]
    return max([history.run.load_end_ns, *ends], default=0)


def _rates(history: History, table: Sequence[Request]) -> list[Json]:
    """Per clock second, which is how load profiles state rates."""
    start = history.run.load_start_ns
    last = max(0, (_end_ns(history, table) - start) // NS_PER_S)
    offered = Counter((row.intended_ns - start) // NS_PER_S for row in table)
    served = Counter((row.end_ns - start) // NS_PER_S for row in table if row.ok and row.end_ns is not None)
    bins = range(last + 1)
    x = [seconds(history, start + b * NS_PER_S) for b in bins]
    return [
        _line("offered", x, [offered[b] for b in bins], BLUE, "y", "%{y} offered per s", fill="tozeroy"),
        _line("served", x, [served[b] for b in bins], ORANGE, "y", "%{y} served per s"),
    ]


def _ttft(history: History, table: Sequence[Request]) -> list[Json]:
    answered = [(row, ms) for row in table if row.ok and (ms := row.ttft_ms) is not None]
    failed = [row for row in table if not row.ok and not row.hung_up_by_plan]
    top = max((ms for _, ms in answered), default=1000.0) * 1.6
    return [
        _dots(
            "TTFT", [seconds(history, row.intended_ns) for row, _ in answered], [round(ms, 1) for _, ms in answered],
            [f"request {row.request_id} on {row.pod}" for row, _ in answered],
            {"color": BLUE, "size": 4, "opacity": 0.6},
        ),
        _dots(
            "failed", [seconds(history, row.intended_ns) for row in failed], [top] * len(failed),
            [f"request {row.request_id}: {row.outcome} on {row.pod or 'no pod'}" for row in failed],
            {"color": VERMILION, "size": 8, "symbol": "x"},
        ),
    ]  # fmt: skip


def _replicas(history: History) -> list[Json]:
    pods = workload_pods(history)
    deployments = _deployments(history, pods)
    desired = [(event.t_ns, _number(event.object)) for life in deployments for event in life.seen]
    until = history.run.load_end_ns
    start = history.run.load_start_ns
    return [
        _steps(history, "desired", _levels(desired, start, until), GREY, "y3", dash="dot"),
        _steps(history, "ready", count_over_time(pods, _serving, start, until), GREEN, "y3"),
    ]


def _deployments(history: History, pods: Sequence[Life]) -> list[Life]:
    owners = {owner_of(pod.last) for pod in pods}
    sets = [life for life in lives(history.objects, "ReplicaSet") if life.uid in owners]
    above = {owner_of(life.last) for life in sets}
    found = [life for life in lives(history.objects, "Deployment") if life.uid in above]
    return found or sets


def _number(obj: Json) -> int:
    return int(obj.get("spec", {}).get("replicas", 1))


def _serving(pod: Json) -> bool:
    return ready(pod) and not going(pod) and not terminal(pod)


def _nodes(history: History) -> list[Json]:
    known = lives(history.objects, "Node")
    start, until = history.run.load_start_ns, history.run.load_end_ns
    return [
        _steps(history, "nodes", count_over_time(known, lambda node: True, start, until), GREY, "y4", dash="dot"),
        _steps(history, "nodes ready", count_over_time(known, ready, start, until), SKY, "y4"),
    ]


def _waiting(history: History) -> list[Json]:
    table = history.samples
    own = table[(table["source"] == METRICS_SOURCE) & table["name"].str.contains("waiting")]
    totals: dict[int, float] = {}
    for t, value in zip(own["t_ns"].tolist(), own["value"].tolist(), strict=True):
        totals[t] = totals.get(t, 0.0) + value
    x = [seconds(history, t) for t in sorted(totals)]
    return [_line("waiting", x, [totals[t] for t in sorted(totals)], PURPLE, "y5", "%{y} waiting")]


def count_over_time(
    known: Iterable[Life], holds: Callable[[Json], bool], start_ns: int, until_ns: int
) -> list[tuple[int, int]]:
    """How many objects satisfy ``holds``, as (time, count) at each change within the span."""
    deltas: Counter[int] = Counter()
    for life in known:
        before = False
        for event in life.seen:
            now = holds(event.object) and event is not life.gone
            deltas[event.t_ns] += int(now) - int(before)
            before = now
        if life.gone is not None and before:
            deltas[life.gone.t_ns] -= 1
    changes: list[tuple[int, int]] = []
    total = 0
    for t_ns in sorted(deltas):
        total += deltas[t_ns]
        changes.append((t_ns, total))
    return _levels(changes, start_ns, until_ns)


def _levels(changes: Sequence[tuple[int, int]], start_ns: int, until_ns: int) -> list[tuple[int, int]]:
    """Cut to the span, with the level at its start and at its end."""
    before = [value for t, value in changes if t <= start_ns]
    within = [(t, value) for t, value in changes if start_ns < t <= until_ns]
    first = [(start_ns, before[-1])] if before else []
    points = first + within
    return [*points, (until_ns, points[-1][1])] if points else []


def _steps(
    history: History, name: str, points: Sequence[tuple[int, int]], colour: str, axis: str, dash: str = "solid"
) -> Json:
    x = [seconds(history, t) for t, _ in points]
    return _line(name, x, [value for _, value in points], colour, axis, f"%{{y}} {name}", dash=dash)


def _line(
    name: str, x: Sequence[float], y: Sequence[float], colour: str, axis: str, hover: str,
    *, dash: str = "solid", fill: str = "none",
) -> Json:  # fmt: skip
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": list(x), "y": list(y), "xaxis": "x", "yaxis": axis,
        "line": {"color": colour, "width": 2, "shape": "hv", "dash": dash}, "fill": fill,
        "fillcolor": "rgba(0,114,178,0.10)",
        "hovertemplate": hover + "<extra></extra>", "showlegend": False,
    }  # fmt: skip


def _dots(name: str, x: Sequence[float], y: Sequence[float], text: Sequence[str], marker: Json) -> Json:
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": list(x), "y": list(y), "xaxis": "x", "yaxis": "y2",
        "text": list(text), "marker": marker, "hovertemplate": "%{y:.0f} ms, %{text}<extra></extra>",
        "showlegend": False,
    }  # fmt: skip


def _layout(history: History, table: Sequence[Request], limits: dict[str, float], data: Sequence[Json]) -> Json:
    scale = history.run.time_scale
    end = seconds(history, _end_ns(history, table))
    layout: Json = {
        "height": 900, "margin": {"l": 48, "r": 12, "t": 52, "b": 48}, "hovermode": "closest", "showlegend": False,
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 12},
        "xaxis": {
            "range": [0, end], "anchor": "y5", "showgrid": True, "gridcolor": "#E5E7EB", "zeroline": False,
            "title": {
                "text": f"scenario seconds since the load began ({scale:g} = 1 s of clock)", "font": {"size": 12},
            },
            "showspikes": True, "spikemode": "across", "spikethickness": 1, "spikecolor": GREY, "spikedash": "dot",
        },
    }  # fmt: skip
    annotations: list[Json] = []
    shapes: list[Json] = []
    top = 1.0
    for number, (name, height) in enumerate(_PANELS, 1):
        key = "yaxis" if number == 1 else f"yaxis{number}"
        inner = top - 0.03
        layout[key] = {
            "domain": [max(0.0, top - height), inner], "anchor": "x", "gridcolor": "#E5E7EB", "zeroline": False,
            "rangemode": "tozero", "automargin": True, "fixedrange": True, "nticks": 5,
        }  # fmt: skip
        annotations.append(_heading(_HEADINGS[name], inner))
        top = top - height - _GAP
    layout["yaxis2"] |= {"type": "log", "rangemode": "normal", "nticks": 4}
    for axis in ("y3", "y4"):  # a level at the very top of its panel would hide behind the edge
        most = max((y for trace in data if trace["yaxis"] == axis for y in trace["y"]), default=1)
        layout[axis.replace("y", "yaxis")]["range"] = [0, most + 1]
    if "ttft_ms" in limits:
        shapes.append(_limit_line(limits["ttft_ms"], "y2"))
    shapes += [*_fault_shapes(history, end), *_phase_shapes(history)]
    annotations += [*_phase_names(history), *_fault_names(history, end)]
    return layout | {"shapes": shapes, "annotations": annotations}


def _word(text: str, colour: str) -> str:
    return f'<span style="color:{colour}">{text}</span>'


_HEADINGS = {
    "rate": f"<b>Requests per clock second</b>: {_word('offered', BLUE)}, {_word('served', ORANGE)}",
    "ttft": f"<b>TTFT, ms</b>: {_word('each answer', BLUE)}, {_word('✖ failed', VERMILION)}",
    "replicas": f"<b>Replicas</b>: {_word('ready', GREEN)}, {_word('desired', GREY)}",
    "nodes": f"<b>Nodes</b>: {_word('ready', SKY)}, {_word('all', GREY)}",
    "waiting": f"<b>Waiting requests</b> as the {_word('autoscaler reads them', PURPLE)}",
}


def _heading(text: str, y: float) -> Json:
    return {
        "text": text, "xref": "paper", "x": 0, "xanchor": "left", "yref": "paper", "y": y, "yanchor": "bottom",
        "showarrow": False, "font": {"size": 12},
        "bgcolor": "rgba(255,255,255,0.8)",
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
    for (_, start, over, disruptive), colour in zip(fault_spans(history), _colours(history), strict=True):
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


def _fault_names(history: History, end: float) -> list[Json]:
    names: list[Json] = []
    spans = fault_spans(history)
    for number, ((fault_id, start, _, _), colour) in enumerate(zip(spans, _colours(history), strict=True)):
        x = seconds(history, start)
        names.append(
            {
                "text": fault_id, "xref": "x", "x": x, "xanchor": "right" if x > end * 0.6 else "left", "yref": "paper",
                "y": 1.0, "yanchor": "bottom", "yshift": 4 + 13 * (number % 2), "showarrow": False,
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
