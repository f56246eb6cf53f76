"""Budgets that cannot keep their promise as they are written: they block for ever, protect nobody, or share a pod."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.story import moment, tell
from harness.checks.units import listed
from harness.history.lives import ByName, Json, Life, bound_ns, disrupted, lives, node_of, workload_pods
from harness.history.replica_sets import leaving
from harness.history.tables import ObjectEvent, ObjectEventType
from harness.verdict import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.history.reader import History

    Covered = Callable[[History, Life], list[Life]]


@dataclass(frozen=True, slots=True)
class Misfit:
    """A budget, what is wrong with it, and the pod by which it showed."""

    budget: Life
    what: str
    change: str
    pod: Life
    event: ObjectEvent


def misfits(history: History, held: Sequence[Life], covered: Covered) -> list[Misfit]:
    """Only those that a drain has met: a budget nobody asked anything of has broken no promise yet. ``held`` are pods
    that a drain was kept from taking."""
    budgets = lives(history.objects, "PodDisruptionBudget")
    nodes = ByName(lives(history.objects, "Node"))
    under = {budget.uid: {pod.uid for pod in covered(history, budget)} for budget in budgets}
    kept = {pod.uid for pod in held}
    found: list[Misfit] = []
    for pod in workload_pods(history):
        left = leaving(pod)
        end_ns = left.t_ns if left else history.recorded_until_ns
        for drained, _ in drains(nodes, pod, end_ns):
            met = [b for b in budgets if there(b, max(drained.t_ns, min(b.born_ns, end_ns)))]
            over = [b for b in met if pod.uid in under[b.uid]]
            if misfit := _misfit(pod, drained, met, over, pod.uid in kept):
                found.append(misfit)
                break
    return found


def drains(nodes: ByName, pod: Life, end_ns: int) -> list[tuple[ObjectEvent, int]]:
    """When somebody announced, while the pod was on its node, that the node's pods will be moved, and until when that
    stood. A pod may outlive its node, and then be on the next of the name."""
    since_ns = bound_ns(pod)
    found: list[tuple[ObjectEvent, int]] = []
    for node in nodes.during(node_of(pod.last), since_ns, end_ns):
        begun: ObjectEvent | None = None
        for event in node.seen:
            if disrupted(event.object):
                begun = begun or event
            elif begun is not None:
                found.append((begun, event.t_ns))
                begun = None
        if begun is not None:
            found.append((begun, node.gone.t_ns if node.gone else end_ns))
    return [(begun, until_ns) for begun, until_ns in found if begun.t_ns <= end_ns and until_ns >= since_ns]


def _misfit(pod: Life, drained: ObjectEvent, met: Sequence[Life], over: Sequence[Life], held: bool) -> Misfit | None:
    """``met``: the budgets that were there; ``over``: those of them that the pod is under."""
    if len(both := _at_once(over, drained.t_ns)) > 1:
        names = listed([b.name for b in both])
        what = f"{pod.name} is under {names} at once, and the Eviction API refuses such a pod for ever"
        return Misfit(both[1], what, "let one budget cover each pod: narrow a selector", pod, drained)
    if not over and (empty := _selecting_nothing(met, pod)) is not None:
        what = f"{empty.name} selects nothing, so {pod.name} was drained under no budget"
        return Misfit(empty, what, "make the budget's selector match the labels of the pods", pod, drained)
    if over and held and _never_allows(over[0]):
        what = f"{over[0].name} allows no disruption even with all pods healthy, so that {pod.name} was held back"
        change = "let maxUnavailable be at least 1, or minAvailable less than the replicas"
        return Misfit(over[0], what, change, pod, drained)
    return None


def there(budget: Life, t_ns: int) -> bool:
    """Whether the budget was there: nobody keeps one that came later, or had gone."""
    came = budget.seen[0]
    early = came.type is ObjectEventType.ADDED and t_ns < came.t_ns
    return not early and (budget.gone is None or t_ns <= budget.gone.t_ns)


def _at_once(budgets: Sequence[Life], since_ns: int) -> list[Life]:
    """Those that were there together at one moment since then: one that took another's place is not a second."""
    moments = [max(since_ns, budget.born_ns) for budget in budgets]
    return max(([b for b in budgets if there(b, t_ns)] for t_ns in moments), key=len, default=[])


def _selecting_nothing(budgets: Sequence[Life], pod: Life) -> Life | None:
    """A budget of the pod's namespace whose status never expected a pod."""
    own = [b for b in budgets if b.namespace == pod.namespace and b.born_ns <= pod.seen[-1].t_ns]
    return next((b for b in own if all(not _status(e).get("expectedPods") for e in b.seen)), None)


def _never_allows(budget: Life) -> bool:
    """In every version that has a status it wants at least as many as there are."""
    known = [s for e in budget.seen if (s := _status(e)).get("expectedPods")]
    return bool(known) and all(int(s.get("desiredHealthy", 0)) >= int(s["expectedPods"]) for s in known)


def _status(event: ObjectEvent) -> Json:
    status: Json = event.object.get("status") or {}
    return status


def misfit_sentence(found: Sequence[Misfit]) -> str:
    return "; ".join(dict.fromkeys(m.what for m in _firsts(found)))


def misfit_story(history: History, found: Sequence[Misfit]) -> str:
    first = found[0]
    return tell(
        promised="a budget holds a drain back only until it is safe, and protects the pods it is meant for",
        happened=misfit_sentence(found),
        when=moment(history, first.event.t_ns),
        objects=[first.budget.name, *dict.fromkeys(m.pod.name for m in found)],
        cause=f"the budget {first.budget.name} as it is written",
        change=first.change,
    )


def misfit_rows(found: Sequence[Misfit]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(f"objects:{m.event.index}", m.event.t_ns, m.what, {"pdb": m.budget.name, "pod": m.pod.name})
        for m in found
    )


def _firsts(found: Sequence[Misfit]) -> list[Misfit]:
    """One for each budget."""
    return list({m.budget.uid: m for m in reversed(found)}.values())[::-1]
