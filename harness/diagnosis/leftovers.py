"""What was left over, and who should have taken it away."""

from __future__ import annotations

from collections.abc import Iterator

from harness.checks.units import count, listed
from harness.diagnosis.case import SHOWN, Case
from harness.diagnosis.scope import nodes_hit
from harness.diagnosis.suspect import DRAIN, POD_GARBAGE, PROVISIONER, Suspect
from harness.history.lives import Life, condition, disrupted, going, node_of, node_of_claim, terminal
from harness.history.tables import FaultStage
from harness.verdict import Evidence

_BREAKS = frozenset({"recovery", "capacity", "scale_up", "baseline"})
_STAYS_S = 120.0
_CORDON = "node.kubernetes.io/unschedulable"
_NEAR_S = 5.0


def leftovers(case: Case) -> Iterator[Suspect]:
    yield from _marked(case)
    yield from _nodes(case)
    yield from _claims(case)
    yield from _orphans(case)


def _marked(case: Case) -> Iterator[Suspect]:
    """Nodes that are marked to be drained, stay so, and go nowhere: no fault and no claim asked for it."""
    until = case.history.recorded_until_ns
    struck = {name for f in case.history.faults if f.stage is FaultStage.INJECTED for name in f.targets}
    for node in case.nodes.values():
        event = node.when(disrupted)
        if (
            event is None
            or node.gone is not None
            or node.when(going)
            or node.name in struck
            or not disrupted(node.last)
        ):
            continue
        if until - event.t_ns < case.ns(_STAYS_S):
            continue
        keys = [str(t.get("key")) for t in node.last.get("spec", {}).get("taints") or ()]
        verb = "cordoned" if keys == [_CORDON] else f"gave the taint {listed(keys)} to"
        drained = [f"{n.name}" for n in case.nodes.values() if n is not node and _near(case, n, event.t_ns)]
        meanwhile = f", in the moment in which {listed(drained)} was to be drained" if drained else ""
        emptied = any(
            node_of(pod.last) == node.name and (e := pod.when(going)) is not None and e.t_ns >= event.t_ns
            for pod in case.of("Pod")
        )
        unasked = "" if emptied else ", which nobody had asked for"
        act = f"{verb} {node.name}{unasked}{meanwhile}, and left it so"
        row = Evidence(
            f"objects:{event.index}", event.t_ns, f"{node.name}: {listed(keys)}; no deletion, no fault on it"
        )
        yield Suspect(
            f"{DRAIN}, or whoever else marks nodes,",
            act,
            event.t_ns,
            _BREAKS,
            scope=nodes_hit(case, [node.name]),
            seen=(row,),
            otherwise="managedFields of the Node (not recorded here) or the audit log name the writer",
        )


def _near(case: Case, node: Life, t_ns: int) -> bool:
    event = node.when(disrupted)
    return event is not None and abs(event.t_ns - t_ns) <= case.ns(_NEAR_S)


def _nodes(case: Case) -> Iterator[Suspect]:
    """Asked to go, its instance ended, and still there: its finalizer says who has not let it go."""
    until = case.history.recorded_until_ns
    for node in case.nodes.values():
        asked = node.when(going)
        if asked is None or node.gone is not None or until - asked.t_ns < case.ns(_STAYS_S):
            continue
        ended = next(
            (e for c in case.of("NodeClaim") if node_of_claim(c) == node.name and (e := c.when(_ending)) is not None),
            None,
        )
        held = node.last["metadata"].get("finalizers") or []
        what = "whose instance was ended" if ended else "which was asked to go"
        act = f"never let go of the Node {node.name}, {what}: finalizer {listed(list(held)) or 'none'} is still on it"
        first = ended or asked
        row = Evidence(
            f"objects:{node.seen[-1].index}",
            first.t_ns,
            f"Node {node.name}: deletionTimestamp, finalizers {listed(list(held)) or 'none'}",
        )
        yield Suspect(
            f"{PROVISIONER} (termination of nodes)",
            act,
            first.t_ns,
            _BREAKS,
            scope=nodes_hit(case, [node.name]),
            seen=(row,),
        )


def _claims(case: Case) -> Iterator[Suspect]:
    until = case.history.recorded_until_ns
    for claim in case.of("NodeClaim"):
        node = case.nodes.get(node_of_claim(claim))
        if claim.gone is not None or node is None or node.gone is None or until - node.gone.t_ns < case.ns(_STAYS_S):
            continue
        held = claim.last["metadata"].get("finalizers") or []
        act = (
            f"never let go of the NodeClaim {claim.name}, whose Node is gone: finalizer"
            f" {listed(list(held)) or 'none'} is still on it"
        )
        row = Evidence(
            f"objects:{claim.seen[-1].index}",
            node.gone.t_ns,
            f"NodeClaim {claim.name} is there, Node {node.name} is not",
        )
        yield Suspect(
            f"{PROVISIONER} (termination of nodes)",
            act,
            node.gone.t_ns,
            _BREAKS,
            scope=nodes_hit(case, [node.name]),
            seen=(row,),
        )


def _ending(claim: dict[str, object]) -> bool:
    return condition(claim, "InstanceTerminating").get("status") == "True"


def _orphans(case: Case) -> Iterator[Suspect]:
    """Pods of nodes that are gone: PodGC takes them (kubernetes pkg/controller/podgc, every 20 s)."""
    until = case.history.recorded_until_ns
    left = []
    for pod in case.of("Pod"):
        node = case.nodes.get(node_of(pod.last))
        done = terminal(pod.last) and not going(pod.last)
        if (
            pod.gone is None
            and not done
            and node is not None
            and node.gone is not None
            and until - node.gone.t_ns > case.ns(_STAYS_S)
        ):
            left.append((pod, node.gone.t_ns, node.name))
    if left:
        nodes = sorted({name for *_, name in left})
        act = f"left {count(len(left), 'pod')} bound to {listed(nodes)}, which is gone"
        rows = tuple(
            Evidence(f"objects:{p.seen[-1].index}", t, f"{p.name} is still bound to {n}") for p, t, n in left[:SHOWN]
        )
        yield Suspect(
            POD_GARBAGE,
            act,
            min(t for _, t, _ in left),
            _BREAKS,
            scope=f"hit: {listed([p.name for p, *_ in left])}",
            seen=rows,
        )
