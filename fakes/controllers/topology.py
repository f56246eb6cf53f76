"""What a pod asks of the pods around it: topology spread and (anti-)affinity between pods. Pure.

After kubernetes v1.37 pkg/scheduler/framework/plugins/{podtopologyspread,interpodaffinity}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fakes.controllers.objects import is_terminating, namespace_of
from fakes.controllers.placement import NodeRoom, Refusal, matches_node
from fakes.kube.selectors import match_label_selector
from harness.kube.port import Json

SPREAD = "node(s) didn't match pod topology spread constraints"
NO_KEY = f"{SPREAD} (missing required label)"
NO_COMPANY = "node(s) didn't match pod affinity rules"
COMPANY = "node(s) didn't match pod anti-affinity rules"
REPELLED = "node(s) didn't satisfy existing pods anti-affinity rules"

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

WEIGHT = 2.0
"""Of these scores against that of free resources, as in Kubernetes' default profile."""

Placed = tuple[Json, Json]
"""A pod and its node."""


def is_constrained(pod: Json) -> bool:
    affinity = pod["spec"].get("affinity") or {}
    return bool(
        pod["spec"].get("topologySpreadConstraints") or affinity.get("podAffinity") or affinity.get("podAntiAffinity")
    )


def repels(pod: Json) -> bool:
    """Whether it keeps others away."""
    return bool(_terms(pod, "podAntiAffinity"))


def _terms(pod: Json, kind: str, when: str = REQUIRED) -> Sequence[Json]:
    return ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(when) or ()


def _label(node: Json, key: str) -> str | None:
    found = (node["metadata"].get("labels") or {}).get(key)
    return None if found is None else str(found)


def _selected(selector: Json | None, keys: Sequence[str], asking: Json, pod: Json) -> bool:
    """``keys``: labels in which the other pod has to be like the one that asks."""
    labels, own = pod["metadata"].get("labels") or {}, asking["metadata"].get("labels") or {}
    return match_label_selector(selector, labels) and all(labels.get(k) == own[k] for k in keys if k in own)


def _matches_term(term: Json, asking: Json, pod: Json) -> bool:
    """Whether ``pod`` is one that the term of ``asking`` speaks of."""
    spaces = term.get("namespaces") or []
    if term.get("namespaceSelector") is None:
        spaces = spaces or [namespace_of(asking)]
    elif not term["namespaceSelector"]:
        spaces = []  # an empty selector: all namespaces
    if spaces and namespace_of(pod) not in spaces:
        return False
    return _selected(term.get("labelSelector"), term.get("matchLabelKeys") or (), asking, pod)


@dataclass(slots=True)
class _Spread:
    constraint: Json
    counts: Counter[str] = field(default_factory=Counter)
    own: int = 0

    @property
    def key(self) -> str:
        return str(self.constraint["topologyKey"])

    @property
    def is_hard(self) -> bool:
        return bool(self.constraint.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule")

    def least(self) -> int:
        if len(self.counts) < int(self.constraint.get("minDomains") or 1):
            return 0
        return min(self.counts.values(), default=0)


class Neighbourhood:
    """The pods of a cluster as one pod sees them, counted once and then asked for each node."""

    def __init__(
        self, pod: Json, rooms: Mapping[str, NodeRoom], placed: Sequence[Placed], repelling: Iterable[Placed]
    ) -> None:
        self._pod = pod
        self._spreads = [_count_spread(pod, c, rooms, placed) for c in _constraints(pod)]
        self._company = [_count_term(t, pod, placed) for t in _terms(pod, "podAffinity")]
        self._avoided = [_count_term(t, pod, placed) for t in _terms(pod, "podAntiAffinity")]
        self._closed = {
            (str(term["topologyKey"]), _label(node, term["topologyKey"]))
            for other, node in repelling
            for term in _terms(other, "podAntiAffinity")
            if _matches_term(term, other, pod)
        }
        self._wishes = [
            (sign * int(w["weight"]), str(w["podAffinityTerm"]["topologyKey"]), _count_term(t, pod, placed))
            for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1))
            for w in _terms(pod, kind, PREFERRED)
            for t in (w["podAffinityTerm"],)
        ]

    def refuse(self, node: Json) -> Refusal | None:
        return self._refuse_spread(node) or self._refuse_company(node)

    def _refuse_spread(self, node: Json) -> Refusal | None:
        for spread in self._spreads:
            if not spread.is_hard:
                continue
            domain = _label(node, spread.key)
            if domain is None:
                return Refusal((NO_KEY,), True)
            if spread.counts[domain] + spread.own - spread.least() > int(spread.constraint["maxSkew"]):
                return Refusal((SPREAD,), False)
        return None

    def _refuse_company(self, node: Json) -> Refusal | None:
        terms = _terms(self._pod, "podAffinity")
        domains = [_label(node, t["topologyKey"]) for t in terms]
        alone = not any(self._company) and all(_matches_term(t, self._pod, self._pod) for t in terms)
        if terms and (None in domains or not (alone or all(self._found(domains)))):
            return Refusal((NO_COMPANY,), True)
        for term, counts in zip(_terms(self._pod, "podAntiAffinity"), self._avoided, strict=True):
            domain = _label(node, term["topologyKey"])
            if domain is not None and counts[domain]:
                return Refusal((COMPANY,), False)
        if any(value is not None and _label(node, key) == value for key, value in self._closed):
            return Refusal((REPELLED,), False)
        return None

    def _found(self, domains: Sequence[str | None]) -> list[bool]:
        pairs = zip(domains, self._company, strict=True)
        return [domain is not None and counts[domain] > 0 for domain, counts in pairs]

    def cost(self, node: Json) -> float:
        """0 where everything is as wished; more the worse."""
        total = 0.0
        for spread in self._spreads:
            most = max(spread.counts.values(), default=0)
            if not spread.is_hard and most:
                total += WEIGHT * spread.counts[_label(node, spread.key) or ""] / most
        heaviest = sum(abs(weight) for weight, _, _ in self._wishes)
        for weight, key, counts in self._wishes:
            most = max(counts.values(), default=0)
            if most:
                total -= WEIGHT * weight / heaviest * counts[_label(node, key) or ""] / most
        return total


def _constraints(pod: Json) -> Sequence[Json]:
    return pod["spec"].get("topologySpreadConstraints") or ()


def _count_spread(pod: Json, constraint: Json, rooms: Mapping[str, NodeRoom], placed: Sequence[Placed]) -> _Spread:
    """Counts domains that the pod could be in by its node selector; terminating pods are on their way out."""
    spread = _Spread(constraint)
    selector, keys = constraint.get("labelSelector"), constraint.get("matchLabelKeys") or ()
    hard_keys = [str(c["topologyKey"]) for c in _constraints(pod)]
    honours = constraint.get("nodeAffinityPolicy", "Honor") == "Honor"

    def counts(node: Json) -> bool:
        return all(_label(node, k) is not None for k in hard_keys) and (not honours or matches_node(pod["spec"], node))

    for room in rooms.values():
        if counts(room.node):
            spread.counts[_label(room.node, spread.key) or ""] += 0
    for other, node in placed:
        same = namespace_of(other) == namespace_of(pod) and not is_terminating(other)
        if same and counts(node) and _selected(selector, keys, pod, other):
            spread.counts[_label(node, spread.key) or ""] += 1
    spread.own = int(_selected(selector, keys, pod, pod))
    return spread


def _count_term(term: Json, pod: Json, placed: Sequence[Placed]) -> Counter[str]:
    """Matching pods by domain."""
    found: Counter[str] = Counter()
    for other, node in placed:
        domain = _label(node, term["topologyKey"])
        if domain is not None and _matches_term(term, pod, other):
            found[domain] += 1
    return found
