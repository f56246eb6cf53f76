"""No voluntary disruption leaves fewer healthy pods than their disruption budget asks for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from harness.checks.budgets import Misfit, drains, misfit_rows, misfit_sentence, misfit_story, misfits, there
from harness.checks.departures import pods_scaled_away
from harness.checks.nodepool_rules import Broken, broken_rows, broken_rules, broken_sentence, broken_story
from harness.checks.stories import pdb_story
from harness.checks.undisturbed import (
    Disturbed,
    disturbed,
    disturbed_rows,
    disturbed_sentence,
    disturbed_story,
    undisturbed_hidden,
)
from harness.checks.units import NS_PER_MS, both, count, listed, scenario_s
from harness.history.lives import (
    ByName,
    Json,
    Life,
    condition,
    disrupted,
    going,
    labels_of,
    lives,
    node_of,
    ready,
    terminal,
)
from harness.history.replica_sets import leaving
from harness.history.tables import ObjectEvent, ObjectEventType
from harness.selectors import selector_of
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import PdbSpec

EVICTION, PLAIN_DELETE = "evicted", "deleted past the Eviction API by a drain"
_INVOLUNTARY = {
    "DeletionByTaintManager": "taken by the taint manager",
    "DeletionByPodGC": "collected after its node",
    "TerminationByKubelet": "ended by its kubelet",
    "PreemptionByScheduler": "preempted",
}
_HELD_NS = 50 * NS_PER_MS
"""A drain that is not held back evicts at once; what stays longer than this while nothing is allowed was refused."""
_NEAR_NS = 250 * NS_PER_MS
"""Watches of different kinds are not ordered among each other; causes may be received this much after effects."""
_BLINDING = frozenset({"Pod", "PodDisruptionBudget"})
_SIZES = frozenset({"Deployment", "ReplicaSet"})
"""What tells a pod that was scaled away from one that a drain deleted."""


@dataclass(frozen=True, slots=True)
class Disruption:
    """One pod of a budget that was asked to go."""

    pod: Life
    event: ObjectEvent
    how: str
    voluntary: bool
    was_healthy: bool
    healthy_after: int
    desired: int | None
    allowed_before: int | None
    unseen: bool = False
    """The recorder was blind at that moment for pods or budgets, so that the count may be of another one, or for what
    would show that the pod was scaled away."""

    @property
    def overdraws(self) -> bool:
        """Taking a pod that was not healthy costs the budget nothing."""
        if not (self.voluntary and self.was_healthy) or self.desired is None or self.unseen:
            return False
        return self.healthy_after < self.desired or (self.how == PLAIN_DELETE and self.allowed_before == 0)

    @property
    def costs_nothing(self) -> bool:
        """Too few were healthy already, and it was none of them: that says nothing of what a budget holds back."""
        return not self.was_healthy and self.desired is not None and self.healthy_after < self.desired


def pdb(history: History, spec: PdbSpec) -> Finding:
    """Healthy pods are counted from the pods themselves; the wanted number is what the budget's status said last.

    A budget that a drain met and that cannot keep its promise as it is written fails too: one that allows nothing even
    with all pods healthy, one that selects nothing while the workload is drained, two that share a pod. So does a drain
    by Karpenter that takes a pod which asks to be left alone (`karpenter.sh/do-not-disrupt`), and a node that it chose
    of its own will against its rules: the same annotation on it, its NodePool's policy, or a budget of its NodePool.

    UNKNOWN without a budget, without a voluntary disruption of a pod under one, when all that were disrupted were not
    healthy while too few were, when a budget had no status yet, and when the recorder was blind for pods or budgets
    (or, when a pod was deleted plainly, for sizes), unless an overdraft was seen outside of that time. Pods that a
    controller scales away are under no budget; losses with a node are told apart.
    """
    budgets = lives(history.objects, "PodDisruptionBudget")
    under = [(budget, disruptions(history, budget)) for budget in budgets]
    found = [(budget, d) for budget, ds in under for d in ds]
    voluntary = [(budget, d) for budget, d in found if d.voluntary]
    bad = [(budget, d) for budget, d in voluntary if d.overdraws]
    held = [row for budget in budgets for row in held_back(history, budget)]
    hidden = _BLINDING | _SIZES if any(d.unseen for _, d in voluntary) else _BLINDING
    blind = [gap for gap in history.gaps if gap.kind in hidden]
    longest = max((ns for _, ns in held), default=0)
    refusals = _refusals_in_events(history)
    numbers: dict[str, Value] = {
        "budgets": len(budgets),
        "voluntary": len(voluntary),
        "evicted": sum(1 for _, d in voluntary if d.how == EVICTION),
        "deleted_past_eviction": sum(1 for _, d in voluntary if d.how == PLAIN_DELETE),
        "involuntary": sum(1 for _, d in found if not d.voluntary),
        "overdrawn": len(bad),
        "healthy_spare_min": min(
            (d.healthy_after - d.desired for _, d in voluntary if d.desired is not None), default=None
        ),
        "refused": len(held),
        "refused_s_max": scenario_s(longest, history.run.time_scale) if held else None,
        "refused_in_events": len(refusals),
    }
    refused = _held_text(history, held, longest)
    blinded = any(gap.kind in _BLINDING for gap in history.gaps)
    misfit = [] if blinded else misfits(history, [pod for pod, _ in held], covered)
    torn, broken = disturbed(history), broken_rules(history)
    numbers |= {"taken_against_their_wish": len(torn), "chosen_against_the_rules": len(broken)}
    if bad or misfit or torn or broken:
        parts = [_bad_sentence(bad, len(voluntary))] if bad else []
        parts += [disturbed_sentence(torn)] if torn else []
        parts += [broken_sentence(broken)] if broken else []
        parts += [misfit_sentence(misfit)] if misfit else []
        status, sentence = Status.FAIL, "; ".join(parts) + refused
    elif not budgets:
        status, sentence = Status.UNKNOWN, "there is no disruption budget, so none was put to the test"
    elif not voluntary:
        status, sentence = (
            Status.UNKNOWN,
            "no pod under a budget was disrupted on purpose, so none was put to the test" + refused,
        )
    elif any(d.desired is None for _, d in voluntary):
        status, sentence = Status.UNKNOWN, "a budget had no status yet when its pods were disrupted"
    elif all(d.costs_nothing for _, d in voluntary):
        status = Status.UNKNOWN
        sentence = "only pods that were not healthy were disrupted, when fewer were healthy than asked for already"
    elif blind:
        status, sentence = Status.UNKNOWN, f"no overdraft was seen, but the recorder was blind for {blind[0].kind}"
    elif (gap := undisturbed_hidden(history)) is not None:
        status = Status.UNKNOWN
        sentence = f"a pod that asks to be left alone went, and the recorder was blind for {gap.kind}"
    else:
        status, sentence = Status.PASS, _good_sentence(voluntary) + refused
    wrong = (*disturbed_rows(torn), *broken_rows(broken), *misfit_rows(misfit))
    within = (_row(b, d) for b, d in found if not d.overdraws)
    rows = (*(_row(b, d) for b, d in bad), *wrong, *within, *_held_rows(history, held), *refusals)
    story = _story(history, bad, torn, broken, misfit)
    exercised = len(voluntary) + len(misfit) + len(torn) + len(broken)
    return Finding("pdb", Role.CHECK, status, sentence, exercised, numbers, rows, story=story)


def _story(
    history: History,
    bad: Sequence[tuple[Life, Disruption]],
    torn: Sequence[Disturbed],
    broken: Sequence[Broken],
    misfit: Sequence[Misfit],
) -> str:
    if bad:
        return pdb_story(history, bad)
    if torn:
        return disturbed_story(history, torn)
    if broken:
        return broken_story(history, broken)
    return misfit_story(history, misfit) if misfit else ""


def disruptions(history: History, budget: Life) -> list[Disruption]:
    """Every pod under the budget that was asked to go or vanished, in order; scaled-away ones left out."""
    pods = covered(history, budget)
    nodes = ByName(lives(history.objects, "Node"))
    scaled = pods_scaled_away(history)
    healthy, versions = HealthyCount(pods), _Versions(budget)
    found: list[Disruption] = []
    for pod in pods:
        event = pod.when(going) or pod.gone
        if event is None or _ended_before(pod, event) or not there(budget, event.t_ns):
            continue
        how, voluntary = _how(pod, event, nodes, scaled)
        if not how:
            continue
        before = _version_before(pod, event)
        status = (versions.before(event) or {}).get("status") or {}
        healthy_after = healthy.at(event.index)
        found.append(
            Disruption(
                pod, event, how, voluntary, _healthy(before), healthy_after,
                status.get("desiredHealthy"), status.get("disruptionsAllowed"), _unseen(history, event, how),
            )
        )  # fmt: skip
    return sorted(found, key=lambda d: d.event.index)


def _unseen(history: History, event: ObjectEvent, how: str) -> bool:
    """A pod that a list shows going, or that a list no longer shows, went at a moment nobody saw."""
    if event.type in (ObjectEventType.LISTED, ObjectEventType.GAP):
        return True
    kinds = _BLINDING | _SIZES if how == PLAIN_DELETE else _BLINDING
    blind = (gap for gap in history.gaps if gap.kind in kinds)
    return any((gap.since_ns or 0) <= event.t_ns <= gap.t_ns + _NEAR_NS for gap in blind)


def covered(history: History, budget: Life) -> list[Life]:
    """Pods under the budget, by first sight."""
    selector = selector_of(budget.last.get("spec", {}).get("selector"))
    pods = lives(history.objects, "Pod")
    return [p for p in pods if p.namespace == budget.namespace and selector.matches(labels_of(p.last))]


class HealthyCount:
    """How many of some pods were healthy at each line of the recording. All pods come through one watch, so the order
    of its lines is the order of what happened."""

    def __init__(self, pods: Sequence[Life]) -> None:
        changes: Counter[int] = Counter()
        for pod in pods:
            was = False
            for event in pod.seen:
                if pod.gone is not None and event.index >= pod.gone.index:
                    break
                now = _healthy(event.object)
                changes[event.index] += now - was
                was = now
            if pod.gone is not None:
                changes[pod.gone.index] -= was
        self._indices = sorted(changes)
        self._counts = list(accumulate(changes[index] for index in self._indices))

    def at(self, index: int) -> int:
        known = bisect_right(self._indices, index)
        return self._counts[known - 1] if known else 0


def _how(pod: Life, event: ObjectEvent, nodes: ByName, scaled: frozenset[str]) -> tuple[str, bool]:
    """How it was taken, and whether that was voluntary; ("", False) where no budget has a say."""
    target = condition(event.object, "DisruptionTarget")
    reason = str(target.get("reason") or "") if target.get("status") == "True" else ""
    if reason == "EvictionByEvictionAPI":
        return EVICTION, True
    if reason:
        return _INVOLUNTARY.get(reason, f"disrupted: {reason}"), False
    node = nodes.at(node_of(event.object) or node_of(pod.last), event.t_ns)
    if node is None:
        return "", False
    if node.at(event.t_ns) is None:
        return "lost with its node", False
    near = node.at(event.t_ns + _NEAR_NS) or node.last
    if not disrupted(near) or pod.uid in scaled:
        return "", False
    return PLAIN_DELETE, True


def _healthy(pod: Json | None) -> bool:
    return pod is not None and ready(pod) and not going(pod) and not terminal(pod)


def _ended_before(pod: Life, event: ObjectEvent) -> bool:
    ended = pod.when(terminal)
    return ended is not None and ended.index < event.index


def _version_before(pod: Life, event: ObjectEvent) -> Json | None:
    return next((e.object for e in reversed(pod.seen) if e.index < event.index), None)


class _Versions:
    """Of a budget. Budgets come through another watch than pods: the resourceVersion orders the two where it is a
    number."""

    def __init__(self, budget: Life) -> None:
        self._seen = budget.seen
        revisions = [_revision(event.object) for event in budget.seen]
        self._revisions = [revision for revision in revisions if revision is not None]
        self._ordered = len(self._revisions) == len(revisions) and self._revisions == sorted(self._revisions)

    def before(self, event: ObjectEvent) -> Json | None:
        at = _revision(event.object)
        if at is None or not self._revisions:
            known = bisect_right(self._seen, event.t_ns, key=lambda seen: seen.t_ns)
            return self._seen[known - 1].object if known else None
        if self._ordered:
            known = bisect_left(self._revisions, at)
            return self._seen[known - 1].object if known else None
        last: Json | None = None
        for seen in self._seen:  # some say their revision, some do not
            revision = _revision(seen.object)
            if revision < at if revision is not None else seen.t_ns <= event.t_ns:
                last = seen.object
        return last


def _revision(obj: Json) -> int | None:
    text = str(obj.get("metadata", {}).get("resourceVersion") or "")
    return int(text) if text.isdigit() else None


def held_back(history: History, budget: Life) -> list[tuple[Life, int]]:
    """Pods that stayed on a node being drained while their budget allowed nothing, and for how long in all."""
    nodes = ByName(lives(history.objects, "Node"))
    last_ns = history.recorded_until_ns
    shut = _shut_spans(budget, last_ns)
    found: list[tuple[Life, int]] = []
    for pod in covered(history, budget) if shut else ():
        left = leaving(pod)
        end = left.t_ns if left else last_ns
        spans = [(max(begun.t_ns, pod.born_ns), min(end, until)) for begun, until in drains(nodes, pod, end)]
        stayed = sum(max(0, min(until, b) - max(start, a)) for start, until in spans for a, b in shut)
        if stayed > _HELD_NS:
            found.append((pod, stayed))
    return found


def _shut_spans(budget: Life, last_ns: int) -> list[tuple[int, int]]:
    """When the budget's status allowed no disruption."""
    edges = [*(e.t_ns for e in budget.seen[1:]), budget.gone.t_ns if budget.gone else last_ns]
    return [
        (event.t_ns, until)
        for event, until in zip(budget.seen, edges, strict=True)
        if (event.object.get("status") or {}).get("disruptionsAllowed") == 0
    ]


def _refusals_in_events(history: History) -> list[Evidence]:
    """What Events said of refusals. They may be dropped or merged, so they only attribute."""
    found: list[Evidence] = []
    for event in history.objects.of_kind("Event"):
        message = str(event.object.get("message") or event.object.get("note") or "")
        if "disruption budget" in message or "violates a PDB" in message:
            found.append(Evidence(f"objects:{event.index}", event.t_ns, f"{event.object.get('reason')}: {message}"))
    return found


def _bad_sentence(bad: Sequence[tuple[Life, Disruption]], voluntary: int) -> str:
    parts = [
        f"{d.pod.name} on {node_of(d.pod.last) or 'no node'} was {d.how}, leaving {d.healthy_after} healthy where "
        f"{b.name} asks for {d.desired}"
        for b, d in bad
    ]
    return f"{len(bad)} of {count(voluntary, 'voluntary disruption')} overdrew a budget: {'; '.join(parts[:5])}"


def _good_sentence(voluntary: Sequence[tuple[Life, Disruption]]) -> str:
    costly = (d for _, d in voluntary if not d.costs_nothing)
    spare = min(d.healthy_after - d.desired for d in costly if d.desired is not None)
    names = listed(sorted({budget.name for budget, _ in voluntary}))
    low = "exactly as many healthy as asked for" if spare == 0 else f"{spare} more healthy than asked for"
    return f"{count(len(voluntary), 'voluntary disruption')} under budget {names}, at the tightest {low}"


def _held_text(history: History, held: Sequence[tuple[Life, int]], longest: int) -> str:
    if not held:
        return ""
    for_s = both(longest, history.run.time_scale)
    return f"; {count(len(held), 'pod')} held back while nothing was allowed, for up to {for_s}"


def _row(budget: Life, d: Disruption) -> Evidence:
    text = f"{d.pod.name} {d.how}: {d.healthy_after} healthy left, {budget.name} asks for {d.desired}"
    facts: dict[str, Value] = {
        "pod": d.pod.name, "node": node_of(d.pod.last), "budget": budget.name, "how": d.how, "voluntary": d.voluntary,
        "was_healthy": d.was_healthy, "healthy_after": d.healthy_after, "desired": d.desired,
        "allowed_before": d.allowed_before,
    }  # fmt: skip
    return Evidence(f"objects:{d.event.index}", d.event.t_ns, text, facts)


def _held_rows(history: History, held: Sequence[tuple[Life, int]]) -> list[Evidence]:
    return [
        Evidence(
            f"objects:{pod.seen[-1].index}", None, f"{pod.name} was held back for {both(ns, history.run.time_scale)}",
            {"pod": pod.name, "node": node_of(pod.last)},
        )
        for pod, ns in held
    ]  # fmt: skip
