"""What became of a run of ``make test-real``, step by step, so that two targets can be laid side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.history.lives import Life, condition, going, lives, node_of, ready, terminal
from harness.history.reader import History
from harness.history.tables import FaultEvent, FaultStage, ObjectEvent
from harness.kube.port import Json

NS = 1e9
Steps = dict[str, float | None]
"""Seconds by the name of the step; None: it was not seen."""


class NotSeen(Exception):
    """What should have come about in the run did not."""


def steps_of(folder: Path) -> Steps:
    """From the loss of power on, and from the drain on."""
    history = History.load(folder)
    lost = _stage(history, "node_silent", FaultStage.INJECTED)
    drained = _stage(history, "node_drain", FaultStage.PLANNED)
    pods = [pod for pod in lives(history.objects, "Pod") if pod.namespace == "inference"]
    pods.sort(key=lambda pod: pod.born_ns)
    dead, moved = (
        _first(pods, places, what) for places, what in ((lost.targets, "lost"), (drained.targets, "drained"))
    )
    others = [pod for pod in pods if pod not in (dead, moved)]
    if len(others) < 2:
        raise NotSeen(f"{len(others)} successors were made of the two pods")
    first, second = others[:2]
    nodes = {node.name: node for node in lives(history.objects, "Node")}
    off = {f"{name} after the loss": value for name, value in {
        "the node's Ready is Unknown": _since(lost.t_ns, nodes[lost.targets[0]].when(_unknown)),
        "its pod is asked to go": _since(lost.t_ns, dead.when(going)),
        "a successor is made": (first.born_ns - lost.t_ns) / NS,
        "it is bound to a node": _since(lost.t_ns, first.when(lambda pod: bool(node_of(pod)))),
        "it is Ready": _since(lost.t_ns, first.when(ready)),
    }.items()}  # fmt: skip
    asked = moved.when(going)
    if asked is None:
        raise NotSeen(f"{moved.name} was never asked to go")
    away = {f"{name} after it": value for name, value in {
        "its container has ended": _since(asked.t_ns, moved.when(terminal)),
        "its object is gone": _since(asked.t_ns, moved.gone),
        "the last replica is Ready": _since(asked.t_ns, second.when(ready)),
    }.items()}  # fmt: skip
    return off | {"the drained pod is asked to go after the drain began": (asked.t_ns - drained.t_ns) / NS} | away


def _stage(history: History, fault: str, stage: FaultStage) -> FaultEvent:
    found = next((event for event in history.faults if event.fault == fault and event.stage is stage), None)
    if found is None:
        raise NotSeen(f"{fault} was not {stage.value}")
    return found


def _first(pods: Sequence[Life], nodes: Sequence[str], what: str) -> Life:
    found = next((pod for pod in pods if node_of(pod.last) in nodes), None)
    if found is None:
        raise NotSeen(f"no pod was on the node that was {what}")
    return found


def _since(t_ns: int, event: ObjectEvent | None) -> float | None:
    return None if event is None else (event.t_ns - t_ns) / NS


def _unknown(node: Json) -> bool:
    return condition(node, "Ready").get("status") == "Unknown"


def side_by_side(found: dict[str, Steps]) -> str:
    """A table in Markdown."""
    targets = list(found)
    names = dict.fromkeys(name for steps in found.values() for name in steps)
    rows = [f"| {' | '.join(('step, in seconds', *targets))} |", f"|{'---|' * (len(targets) + 1)}"]
    for name in names:
        values = [found[target].get(name) for target in targets]
        rows.append(f"| {name} | {' | '.join('not seen' if v is None else f'{v:.1f}' for v in values)} |")
    return "\n".join(rows)
