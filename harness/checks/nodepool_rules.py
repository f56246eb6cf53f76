"""Nodes that Karpenter chose of its own will, though its own rules keep them.

The rules of Karpenter v1.15: a node or claim with ``karpenter.sh/do-not-disrupt: "true"`` is no candidate; a NodePool
of policy WhenEmpty gives up empty nodes only; and no more of a NodePool's nodes are on their way out than its strictest
budget for the reason allows, shares rounded up (pkg/controllers/disruption, pkg/apis/v1/nodepool.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from harness.checks.sight import blind
from harness.checks.story import moment, tell
from harness.checks.undisturbed import KEEP, kept
from harness.checks.units import NS_PER_S, count, listed
from harness.history.lives import ByName, Json, Life, condition, labels_of, lives
from harness.history.tables import ObjectEvent, ObjectEventType
from harness.verdict import Evidence

if TYPE_CHECKING:
    from harness.history.reader import History

_POOL = "karpenter.sh/nodepool"
_OF_ITS_OWN_WILL = frozenset({"Empty", "Underutilized", "Drifted"})
_KNOWN_NS = 2 * NS_PER_S
"""Clock time after which Karpenter must know what stands in an object: it judges by its cache right before it acts."""
_BLINDING = frozenset({"Node", "NodeClaim", "NodePool"})


@dataclass(frozen=True, slots=True)
class Broken:
    """A claim that was chosen, when, and the rule that kept it."""

    claim: Life
    event: ObjectEvent
    what: str
    change: str


def broken_rules(history: History) -> list[Broken]:
    """Only what was seen: a choice near a gap, or right after its rule was written, is left out."""
    claims = [c for c in lives(history.objects, "NodeClaim") if _chosen_at(c) is not None]
    if not claims:
        return []
    nodes = ByName(lives(history.objects, "Node"))
    pools = ByName(lives(history.objects, "NodePool"))
    every = lives(history.objects, "NodeClaim")
    found: list[Broken] = []
    for claim in claims:
        event = _chosen_at(claim)
        assert event is not None
        if blind(history, _BLINDING, event.t_ns - _KNOWN_NS, event.t_ns) is not None:
            continue
        node = nodes.at(str((event.object.get("status") or {}).get("nodeName") or claim.name), event.t_ns)
        pool = pools.at(labels_of(event.object).get(_POOL, ""), event.t_ns)
        found += _of_one(claim, event, node, pool, every)
    return found


def _of_one(
    claim: Life, event: ObjectEvent, node: Life | None, pool: Life | None, every: Sequence[Life]
) -> Iterable[Broken]:
    reason, at_ns = _reason(event.object), event.t_ns
    if _stood(claim, at_ns, kept) or (node is not None and _stood(node, at_ns, kept)):
        change = "see why the provisioner takes nodes that forbid it: its version, or who removes the annotation"
        yield Broken(claim, event, f"{claim.name} was chosen as {reason} in spite of {KEEP}", change)
    before, now = (pool.at(at_ns - _KNOWN_NS), pool.at(at_ns)) if pool is not None else (None, None)
    if pool is None or before is None or now is None or _disruption(before) != _disruption(now):
        return
    rules = _disruption(now)
    if reason == "Underutilized" and rules.get("consolidationPolicy") == "WhenEmpty":
        what = f"{claim.name} was chosen as {reason}, though {pool.name} gives up empty nodes only (WhenEmpty)"
        yield Broken(claim, event, what, "see its version, and who writes its NodePools")
    own = [c for c in every if labels_of(c.last).get(_POOL) == pool.name and c.at(at_ns) is not None]
    most = _most(rules, reason, len(own))
    leaving = [c for c in own if _reason(c.at(at_ns) or {}) in _OF_ITS_OWN_WILL]
    if most is not None and len(leaving) > most:
        what = f"{count(len(leaving), 'node')} of {pool.name} left at once ({reason}), where its budget allows {most}"
        yield Broken(claim, event, what, "see its version, and what else removes its nodes")


def _chosen_at(claim: Life) -> ObjectEvent | None:
    """When it was seen to be chosen; None where it was not, or was so before anybody looked."""
    event = claim.when(lambda c: _reason(c) in _OF_ITS_OWN_WILL)
    seen_to_come = event is not None and event.type is ObjectEventType.MODIFIED
    return event if seen_to_come else None


def _reason(claim: Json) -> str:
    said = condition(claim, "DisruptionReason")
    return str(said.get("reason") or "") if said.get("status") == "True" else ""


def _stood(life: Life, at_ns: int, holds: Callable[[Json], bool]) -> bool:
    """Long enough for Karpenter to know."""
    before, now = life.at(at_ns - _KNOWN_NS), life.at(at_ns)
    return before is not None and now is not None and holds(before) and holds(now)


def _disruption(pool: Json) -> Json:
    found: Json = pool.get("spec", {}).get("disruption") or {}
    return found


def _most(rules: Json, reason: str, nodes: int) -> int | None:
    """Of budgets that have a time of day nothing is known here: they are left out, which errs on the lenient side."""
    always = [b for b in rules.get("budgets") or () if not b.get("schedule")]
    budgets = [b for b in always if reason in (b.get("reasons") or (reason,))]
    amounts = [str(b.get("nodes", "10%")) for b in budgets]
    return min((ceil(nodes * int(a[:-1]) / 100) if a.endswith("%") else int(a) for a in amounts), default=None)


def broken_sentence(found: Sequence[Broken]) -> str:
    return f"{count(len(found), 'time')} Karpenter broke its own rules: {listed([b.what for b in found])}"


def broken_story(history: History, found: Sequence[Broken]) -> str:
    first = found[0]
    return tell(
        promised="Karpenter gives up of its own will only what annotations, policy and budgets let go",
        happened=broken_sentence(found),
        when=moment(history, first.event.t_ns),
        objects=list(dict.fromkeys(b.claim.name for b in found)),
        cause=first.what,
        change=first.change,
    )


def broken_rows(found: Sequence[Broken]) -> tuple[Evidence, ...]:
    return tuple(Evidence(f"objects:{b.event.index}", b.event.t_ns, b.what, {"claim": b.claim.name}) for b in found)
