"""What to do about the candidates: delete the empty, replace the drifted, pack the under-utilised. Pure.

Rules as of Karpenter v1.15 pkg/controllers/disruption. A decision is a set of nodes to go and of nodes to come first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from fakes.controllers.karpenter.candidates import Candidate, is_marked
from fakes.controllers.karpenter.nodepools import DRIFTED, EMPTY, UNDERUTILIZED
from fakes.controllers.karpenter.plan import NewNode, Plan, Template, lacking_variety
from fakes.controllers.objects import condition_of, uid_of
from fakes.nodes.labels import CAPACITY_TYPE
from harness.kube.port import Json

WHEN_UNDERUTILIZED = "WhenEmptyOrUnderutilized"
MOST_AT_ONCE = 100

Simulate = Callable[[Sequence[Candidate]], Plan]
"""The plan as if these candidates' nodes were gone. Pods that it places on nodes which are not usable yet are among its
``unplaced``."""
Explain = Callable[[Candidate, str], None]
"""Takes why a candidate cannot be consolidated."""


@dataclass(frozen=True, slots=True)
class Decision:
    reason: str
    candidates: tuple[Candidate, ...]
    new: tuple[NewNode, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        return frozenset(c.name for c in self.candidates)


def empty(candidates: Sequence[Candidate], allowed: Mapping[str, int]) -> Decision | None:
    """All empty nodes that the budgets let go."""
    left, found = dict(allowed), []
    for candidate in _by_savings(candidates):
        if candidate.pods or candidate.rules.consolidate_after_s is None or left[candidate.rules.name] <= 0:
            continue
        left[candidate.rules.name] -= 1
        found.append(candidate)
    return Decision(EMPTY, tuple(found)) if found else None


def drifted(
    candidates: Sequence[Candidate], allowed: Mapping[str, int], simulate: Simulate, explain: Explain
) -> Decision | None:
    """One node, empty ones first, then the one that drifted first; what its pods need comes before it goes."""

    def since(candidate: Candidate) -> str:
        return str((condition_of(candidate.claim, DRIFTED) or {}).get("lastTransitionTime", ""))

    for candidate in sorted(candidates, key=lambda c: (bool(c.pods), since(c), c.name)):
        if allowed[candidate.rules.name] <= 0:
            continue
        plan = simulate([candidate])
        if _moves_all(plan, [candidate]):
            return Decision(DRIFTED, (candidate,), plan.new)
        explain(candidate, "Not all pods would schedule")
    return None


def underutilized(
    candidates: Sequence[Candidate], allowed: Mapping[str, int], simulate: Simulate, explain: Explain
) -> Decision | None:
    """Several nodes at once if that works, else one."""
    left, found = dict(allowed), []
    for candidate in _by_savings([c for c in candidates if c.rules.policy == WHEN_UNDERUTILIZED]):
        if left[candidate.rules.name] > 0:
            left[candidate.rules.name] -= 1
            found.append(candidate)
    several = _several(found[:MOST_AT_ONCE], simulate)
    if several is not None:
        return several
    for candidate in found:
        one = _consolidate([candidate], simulate, explain)
        if one is not None:
            return one
    return None


def _several(candidates: Sequence[Candidate], simulate: Simulate) -> Decision | None:
    """The longest beginning of the list that one cheaper node, or none, can stand for: by bisection, as in the
    original."""
    low, high = 1, len(candidates) - 1
    best: Decision | None = None
    while low <= high:
        middle = (low + high) // 2
        found = _not_of_the_same(_consolidate(candidates[: middle + 1], simulate, None))
        if found is not None:
            best, low = found, middle + 1
        else:
            high = middle - 1
    return best


def _not_of_the_same(decision: Decision | None) -> Decision | None:
    """Several nodes are not replaced by one of a kind that is among them at its price: taking away the others does the
    same, and moves fewer pods."""
    if decision is None or not decision.new:
        return decision
    (new,) = decision.new
    kinds = {_kind(t.node) for t in new.options}
    limit = min((c.price for c in decision.candidates if _kind(c.node) in kinds), default=float("inf"))
    options = tuple(t for t in new.options if t.price < limit)
    return replace(decision, new=(replace(new, pool=options[0].pool, options=options),)) if options else None


def _kind(node: Json) -> str:
    return str((node["metadata"].get("labels") or {}).get("node.kubernetes.io/instance-type", ""))


def still_valid(
    decision: Decision, candidates: Sequence[Candidate], allowed: Mapping[str, int], simulate: Simulate
) -> bool:
    """Asked a while later with what the candidates are by then: pods may have come, and budgets gone."""
    same = [c for c in candidates if c.name in decision.names]
    if len(same) < len(decision.candidates):
        return False
    if any(sum(c.rules.name == name for c in same) > allowed[name] for name in {c.rules.name for c in same}):
        return False
    if decision.reason == EMPTY:
        return not any(c.pods for c in same)
    again = _consolidate(same, simulate, None)
    return again is not None and len(again.new) <= len(decision.new)


def _consolidate(candidates: Sequence[Candidate], simulate: Simulate, explain: Explain | None) -> Decision | None:
    def refuse(why: str) -> None:
        if explain is not None:
            explain(candidates[0], why)

    plan = simulate(candidates)
    if not _moves_all(plan, candidates):
        refuse("Not all pods would schedule")
        return None
    if not plan.new:
        return Decision(UNDERUTILIZED, tuple(candidates))
    if len(plan.new) > 1:
        refuse(f"Can't remove without creating {len(plan.new)} candidates")
        return None
    options = plan.new[0].options
    if all(c.spot for c in candidates) and any(map(_is_spot, options)):
        refuse("SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node")
        return None
    cheaper = tuple(t for t in options if t.price < sum(c.price for c in candidates))
    if lacking := lacking_variety(cheaper):
        labels = f"(label(s)=[{' '.join(lacking)}])"
        refuse(f"Filtering by price: minValues requirement is not met for label(s) {labels}")
        return None
    if any(map(_is_spot, cheaper)):
        # Were spot to be short when it is ordered, a dearer on-demand node must not come in its place.
        cheaper = tuple(t for t in cheaper if _is_spot(t))
    if not cheaper:
        refuse("Can't replace with a cheaper node")
        return None
    return Decision(UNDERUTILIZED, tuple(candidates), (replace(plan.new[0], pool=cheaper[0].pool, options=cheaper),))


def _moves_all(plan: Plan, candidates: Sequence[Candidate]) -> bool:
    """Whether every pod of the candidates has a place; what is pending anyhow may stay so."""
    unplaced = {uid_of(pod) for pod in plan.unplaced}
    placed = {uid_of(pod) for pod, _ in plan.placed} | {uid_of(pod) for new in plan.new for pod in new.pods}
    return all(uid_of(pod) in placed and uid_of(pod) not in unplaced for c in candidates for pod in c.pods)


def _by_savings(candidates: Sequence[Candidate]) -> list[Candidate]:
    """What saves most for the trouble of moving its pods comes first."""
    return sorted(candidates, key=lambda c: (-c.price / c.cost, c.name))


def _is_spot(template: Template) -> bool:
    return bool(template.node["metadata"]["labels"].get(CAPACITY_TYPE) == "spot")


def eligible(candidates: Sequence[Candidate], reason: str) -> list[Candidate]:
    """Those whose claim is marked for this reason."""
    return [c for c in candidates if is_marked(c.claim, DRIFTED if reason == DRIFTED else "Consolidatable")]
