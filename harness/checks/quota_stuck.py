"""Workloads of a queue that are neither here nor there: admitted behind gates, holding quota and not admitted, put off.

Shapes of kueue.x-k8s.io v1beta1 and v1beta2 (Kueue 0.17, apis/kueue/*/workload_types.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from harness.checks.quota_books import admitted, asked, backing_off, finished, given, is_of
from harness.checks.quota_spans import Open, Span
from harness.history.gpus import changes
from harness.history.lives import Json, Life, condition, going, lives, terminal

if TYPE_CHECKING:
    from harness.history.reader import History

GATE = "kueue.x-k8s.io/admission"


def gated(history: History, workloads: Sequence[Life]) -> list[Span]:
    """Times in which a pod could not be scheduled for Kueue's own gate, though its workload was admitted."""
    found: list[Span] = []
    for pod in lives(history.objects, "Pod"):
        mine = [w for w in workloads if is_of(pod, w)]
        if not mine or not any(_has_gate(event.object) for event in pod.seen):
            continue
        now: dict[str, Json] = {}
        open_ = Open()
        for t_ns, life, event in changes([pod, *mine]):
            if event is None:
                now.pop(life.uid, None)
            else:
                now[life.uid] = event.object
            shut = pod.uid in now and _has_gate(now[pod.uid])
            held = shut and any(uid != pod.uid and admitted(obj) for uid, obj in now.items())
            open_.at(t_ns, {pod.name: "had Kueue's gate though it was admitted"} if held else {})
        found += open_.closed(history.recorded_until_ns)
    return found


def unadmitted(history: History, workloads: Sequence[Life], names: dict[str, str]) -> list[Span]:
    """Times in which a workload held quota that nobody else could have, and was not admitted: a check is not Ready."""
    return list(_spans(history, workloads, names, _reserves))


def put_off(history: History, workloads: Sequence[Life], names: dict[str, str]) -> list[Span]:
    """Times in which a workload that had been evicted was not in its queue again."""
    return list(_spans(history, workloads, names, _is_put_off))


def _spans(
    history: History, workloads: Sequence[Life], names: dict[str, str], say: Callable[[Json], str]
) -> Iterator[Span]:
    for life in workloads:
        open_ = Open()
        for t_ns, _, event in changes([life]):
            what = say(event.object) if event is not None else ""
            open_.at(t_ns, {names[life.uid]: what} if what else {})
        yield from open_.closed(history.recorded_until_ns)


def _reserves(workload: Json) -> str:
    if given(workload) is None or admitted(workload):
        return ""
    states = workload.get("status", {}).get("admissionChecks") or ()
    open_ = [f"{c.get('name')} is {c.get('state')}" for c in states if c.get("state") != "Ready"]
    return f"held quota for {asked(workload)} GPUs and was not admitted" + (f" ({', '.join(open_)})" if open_ else "")


def _is_put_off(workload: Json) -> str:
    if finished(workload) or not backing_off(workload):
        return ""
    reason = condition(workload, "Evicted").get("reason") or condition(workload, "Requeued").get("reason")
    return f"was put off ({reason}) and not queued again"


def _has_gate(pod: Json) -> bool:
    gates = pod.get("spec", {}).get("schedulingGates") or ()
    return any(gate.get("name") == GATE for gate in gates) and not going(pod) and not terminal(pod)
