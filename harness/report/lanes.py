"""The lanes of the timeline: what the load asked and got, what pods, nodes and GPUs did, and what room was left.

Every lane has the same x axis, scenario seconds since the load began. Where there is more than a screen shows, lines
are thinned without losing a peak, and the lane says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from harness.checks.rows import Numbers, Rows, nearest_rank, rows_of
from harness.checks.units import NS_PER_S, scenario_s
from harness.history.autoscaler import METRICS_SOURCE
from harness.history.gpus import fleets
from harness.history.lives import (
    Life,
    disrupted,
    going,
    lives,
    node_of,
    owner_of,
    ready,
    terminal,
    workload_pods,
)
from harness.report.traces import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    POINTS,
    PURPLE,
    SKY,
    VERMILION,
    Json,
    Point,
    dots,
    line,
    thinned,
)  # fmt: skip

if TYPE_CHECKING:
    from harness.history.reader import History

ANSWERS = 4_000
"""So many answers are drawn one by one; of more, quantiles over spans."""
FAILED = 1_000


@dataclass(frozen=True, slots=True)
class Lane:
    """``words`` are what its heading says, each in the colour of its line; ``note`` what was left out."""

    title: str
    height: float
    traces: list[Json]
    words: tuple[tuple[str, str], ...] = ()
    note: str = ""
    logarithmic: bool = False
    limit: float | None = None


def lanes(history: History, limits: dict[str, float]) -> list[Lane]:
    table = rows_of(history)
    makers: tuple[Callable[[], Lane], ...] = (
        lambda: _rates(history, table),
        lambda: _ttft(history, table, limits.get("ttft_ms")),
        lambda: _waiting(history),
        lambda: _replicas(history),
        lambda: _pods(history),
        lambda: _gpus(history),
        lambda: _nodes(history),
        lambda: _headroom(history),
    )
    return [make() for make in makers]


def seconds(history: History, t_ns: int) -> float:
    return round(scenario_s(t_ns - history.run.load_start_ns, history.run.time_scale), 3)


def end_ns(history: History) -> int:
    """Of what is drawn: the load's end, or that of the last answer."""
    ends = rows_of(history).numbers("end_ns")
    return max(history.run.load_end_ns, int(ends[~np.isnan(ends)].max(initial=0)))


def _rates(history: History, table: Rows) -> Lane:
    """Per clock second, which is how load profiles state rates."""
    start = history.run.load_start_ns
    last = max(0, (end_ns(history) - start) // NS_PER_S)
    width = 1 + last // POINTS
    span = width * NS_PER_S
    intended, end = table.numbers("intended_ns"), table.numbers("end_ns")
    failed = ~table.ok & ~table.hung_up_by_plan
    moments = {
        "offered": intended,
        "served": end[table.ok & ~np.isnan(end)],
        "failed": np.where(np.isnan(end), intended, end)[failed],
    }
    kinds = {name: Counter(((t_ns - start) // span).astype(int).tolist()) for name, t_ns in moments.items()}
    bins = range(last // width + 1)
    x = [seconds(history, start + b * span) for b in bins]
    colours = {"offered": BLUE, "served": ORANGE, "failed": VERMILION}
    traces = [
        line(
            name, x, [round(kinds[name][b] / width, 3) for b in bins], colours[name], "y",
            fill="tozeroy" if name == "offered" else "none", dash="dot" if name == "failed" else "solid",
            hover=f"%{{y}} {name} per s",
        )
        for name in kinds
    ]  # fmt: skip
    note = f"means over {width} clock seconds" if width > 1 else ""
    return Lane("Requests per clock second", 1.5, traces, tuple(colours.items()), note)


def _ttft(history: History, table: Rows, limit: float | None) -> Lane:
    ttft = table.latency("ttft_ms")
    answered = table.ok & ~np.isnan(ttft)
    failed = np.flatnonzero(~table.ok & ~table.hung_up_by_plan)
    top = float(ttft[answered].max()) * 1.6 if answered.any() else 1600.0
    if answered.sum() <= ANSWERS:
        marker = {"color": BLUE, "size": 4, "opacity": 0.6}
        rows = table.where(answered)
        texts = [f"request {row.request_id} on {row.pod}" for row in rows]
        x = [seconds(history, row.intended_ns) for row in rows]
        traces = [dots("TTFT", x, [round(ms, 1) for ms in ttft[answered].tolist()], texts, "y", marker)]
        words: tuple[tuple[str, str], ...] = (("each answer", BLUE),)
        note = ""
    else:
        traces = _quantiles(history, table.numbers("intended_ns")[answered], ttft[answered])
        words = (("median", BLUE), ("p95", ORANGE), ("slowest", GREY))
        note = f"of {answered.sum()} answers, each of {len(traces[0]['x'])} spans"
    shown = table.where(failed[:: 1 + len(failed) // FAILED])
    traces.append(
        dots(
            "failed", [seconds(history, row.intended_ns) for row in shown], [top] * len(shown),
            [f"request {row.request_id}: {row.outcome} on {row.pod or 'no pod'}" for row in shown],
            "y", {"color": VERMILION, "size": 8, "symbol": "x"},
        )
    )  # fmt: skip
    if len(shown) < len(failed):
        note = f"{note}{'; ' if note else ''}{len(shown)} of {len(failed)} failed ones drawn"
    return Lane("TTFT, ms", 1.7, traces, (*words, ("✖ failed", VERMILION)), note, logarithmic=True, limit=limit)


def _quantiles(history: History, at_ns: Numbers, ms: Numbers) -> list[Json]:
    start = history.run.load_start_ns
    width = max(1, (int(at_ns.max()) - start) // 400)
    order = np.argsort(at_ns, kind="stable")
    spans, first = np.unique((at_ns[order] - start) // width, return_index=True)
    values = np.split(ms[order], first[1:])
    x = [seconds(history, start + int(span) * width) for span in spans]
    traces = []
    for name, q, colour in (("median", 0.5, BLUE), ("p95", 0.95, ORANGE), ("slowest", 1.0, GREY)):
        y = [round(nearest_rank(own, q) or 0.0, 1) for own in values]
        traces.append(line(name, x, y, colour, "y", hover=f"{name} %{{y:.0f}} ms"))
    return traces


def _waiting(history: History) -> Lane:
    table = history.samples
    own = table[(table["source"] == METRICS_SOURCE) & table["name"].str.contains("waiting")]
    totals = own.groupby("t_ns")["value"].sum()
    points = thinned(list(zip(totals.index.tolist(), totals.tolist(), strict=True)))
    x, y = [seconds(history, t) for t, _ in points], [value for _, value in points]
    words = (("as the autoscaler reads them", PURPLE),)
    return Lane("Waiting requests", 1.0, [line("waiting", x, y, PURPLE, "y")], words)


def _replicas(history: History) -> Lane:
    pods = workload_pods(history)
    start, until = history.run.load_start_ns, history.run.load_end_ns
    sizes: dict[str, int] = {}
    desired: list[Point] = []
    for t, uid, size in sorted(
        (event.t_ns, life.uid, int(event.object.get("spec", {}).get("replicas", 1)))
        for life in _deployments(history, pods)
        for event in life.seen
    ):
        sizes[uid] = size
        desired.append((t, sum(sizes.values())))
    traces = [
        _steps(history, "desired", _levels(desired, start, until), GREY, dash="dot"),
        _steps(history, "ready", count_over_time(pods, _serving, start, until), GREEN),
    ]
    return Lane("Replicas", 1.2, traces, (("ready", GREEN), ("desired", GREY)))


def _deployments(history: History, pods: Sequence[Life]) -> list[Life]:
    owners = {owner_of(pod.last) for pod in pods}
    sets = [life for life in lives(history.objects, "ReplicaSet") if life.uid in owners]
    above = {owner_of(life.last) for life in sets}
    found = [life for life in lives(history.objects, "Deployment") if life.uid in above]
    return found or sets


def _serving(pod: Json) -> bool:
    return ready(pod) and not going(pod) and not terminal(pod)


POD_STATES = {"ready": GREEN, "starting": SKY, "no node yet": ORANGE, "ending": GREY}
NODE_STATES = {"ready": GREEN, "starting or not ready": SKY, "leaving": GREY}
GPU_STATES = {"serving": GREEN, "held, not serving yet": SKY, "free": GREY}


def pod_state(pod: Json) -> str:
    """One of ``POD_STATES``; empty for a pod that has ended."""
    if terminal(pod):
        return ""
    if going(pod):
        return "ending"
    if ready(pod):
        return "ready"
    return "starting" if node_of(pod) else "no node yet"


def node_state(node: Json) -> str:
    if going(node) or disrupted(node):
        return "leaving"
    return "ready" if ready(node) else "starting or not ready"


def _pods(history: History) -> Lane:
    return _stack(history, "Pods of the workload", workload_pods(history), pod_state, POD_STATES)


def _nodes(history: History) -> Lane:
    return _stack(history, "Nodes", lives(history.objects, "Node"), node_state, NODE_STATES)


def _stack(
    history: History, title: str, known: Sequence[Life], state: Callable[[Json], str], colours: dict[str, str]
) -> Lane:
    start, until = history.run.load_start_ns, history.run.load_end_ns

    def is_in(name: str) -> Callable[[Json], bool]:
        return lambda obj: state(obj) == name

    levels = {name: count_over_time(known, is_in(name), start, until) for name in colours}
    return _area(history, title, levels, colours)


def _gpus(history: History) -> Lane:
    levels: dict[str, list[Point]] = {name: [] for name in GPU_STATES}
    short: list[Point] = []
    end = history.run.load_end_ns
    for since, _, fleet in fleets(history, {pod.uid for pod in workload_pods(history)}):
        held = min(fleet.held, fleet.gpus)
        serving = min(fleet.serving, held)
        for name, value in zip(GPU_STATES, (serving, held - serving, fleet.gpus - held), strict=True):
            levels[name].append((since, value))
        short.append((since, fleet.waiting))
    for points in (*levels.values(), short):
        points += [(end, points[-1][1])] if points else []
    lane = _area(history, "GPUs", levels, GPU_STATES)
    asked = _steps(history, "asked for in vain", short, VERMILION, dash="dash")
    return Lane(lane.title, 1.3, [*lane.traces, asked], (*lane.words, ("asked for in vain", VERMILION)), lane.note)


def _headroom(history: History) -> Lane:
    """Of all budgets the tightest: healthy pods beyond those that must stay."""
    namespace = history.run.workload.get("namespace", "")
    budgets = [b for b in lives(history.objects, "PodDisruptionBudget") if b.namespace == namespace]
    spare: dict[str, int] = {}
    points: list[Point] = []
    for t, uid, status in sorted(
        ((e.t_ns, b.uid, e.object.get("status") or {}) for b in budgets for e in b.seen), key=lambda seen: seen[0]
    ):
        if "currentHealthy" in status and "desiredHealthy" in status:
            spare[uid] = int(status["currentHealthy"]) - int(status["desiredHealthy"])
            points.append((t, min(spare.values())))
    levels = _levels(points, history.run.load_start_ns, history.run.load_end_ns)
    traces = [_steps(history, "pods to spare", levels, BLUE)]
    return Lane("Disruption budget", 1.0, traces, (("healthy pods to spare", BLUE),))


def _area(history: History, title: str, levels: dict[str, list[Point]], colours: dict[str, str]) -> Lane:
    """All states at the same moments, as plotly stacks them."""
    moments = sorted({t for points in levels.values() for t, _ in points})
    every = 1 + len(moments) // POINTS
    kept = sorted({*moments[::every], *moments[-1:]})
    traces = []
    for name, points in levels.items():
        values, at, current = [], 0, 0.0
        for t in kept:
            while at < len(points) and points[at][0] <= t:
                current, at = points[at][1], at + 1
            values.append(current)
        traces.append(line(name, [seconds(history, t) for t in kept], values, colours[name], "y", stack=title))
    note = f"each {every}th change drawn" if every > 1 else ""
    return Lane(title, 1.2, traces, tuple(colours.items()), note)


def count_over_time(known: Iterable[Life], holds: Callable[[Json], bool], start_ns: int, until_ns: int) -> list[Point]:
    """How many objects satisfy ``holds``, as (time, count) at each change within the span."""
    deltas: Counter[int] = Counter()
    for life in known:
        before = False
        for event in life.seen:
            now = event is not life.gone and holds(event.object)
            if now != before:
                deltas[event.t_ns] += int(now) - int(before)
            before = now
        if life.gone is not None and before:
            deltas[life.gone.t_ns] -= 1
    changes: list[Point] = []
    total = 0
    for t_ns in sorted(deltas):
        total += deltas[t_ns]
        changes.append((t_ns, total))
    return _levels(changes, start_ns, until_ns)


def _levels(changes: Sequence[Point], start_ns: int, until_ns: int) -> list[Point]:
    """Cut to the span, with the level at its start and at its end."""
    before = [value for t, value in changes if t <= start_ns]
    within = [(t, value) for t, value in changes if start_ns < t <= until_ns]
    first = [(start_ns, before[-1])] if before else []
    points = first + within
    return [*points, (until_ns, points[-1][1])] if points else []


def _steps(history: History, name: str, points: Sequence[Point], colour: str, dash: str = "solid") -> Json:
    kept = thinned(points)
    return line(name, [seconds(history, t) for t, _ in kept], [value for _, value in kept], colour, "y", dash=dash)
