"""Who is hit and who is not, told by what the two have in common: the one place in which that is worked out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from harness.checks.units import count, listed
from harness.history.gpus import is_spot
from harness.history.lives import Life

if TYPE_CHECKING:
    from harness.diagnosis.case import Case

_NAMED = 4
Trait = Callable[[str], str | None]


def pods_hit(case: Case, hit: Collection[str], among: Collection[str], what: str = "pod") -> str:
    """``hit`` of ``among``, by name. Where a trait parts the two without an exception it is said, else where the hit
    ones are: one place speaks for something there, all places against it."""
    hit, among = sorted(set(hit)), sorted(set(among) | set(hit))
    spared = [name for name in among if name not in set(hit)]
    nodes = sorted({case_node(case, name) for name in hit} - {""})
    if not hit:
        return ""
    if not spared:
        where = f", on {count(len(nodes), 'node')}" if len(nodes) > 1 else f" on {nodes[0]}" if nodes else ""
        return f"hit: all {len(hit)} {what}s{where}" if len(hit) > 1 else f"hit: {hit[0]}{where}, the only one"
    if (told := _parted(_pod_traits(case), hit, spared)) is not None:
        mine, theirs = told
        every = f"all {len(hit)} {what}s" if len(hit) > 1 else f"{hit[0]}, the only one"
        return f"hit: {every} {_were(mine, len(hit))}; not hit: the {len(spared)} {_were(theirs, len(spared))}"
    on = f" on {listed(nodes, _NAMED)}" if nodes else ""
    names = f" ({listed(hit, _NAMED)})" if len(hit) <= _NAMED else ""
    return f"hit: {len(hit)} of {count(len(among), what)}{names}{on}"


def nodes_hit(case: Case, hit: Collection[str], among: Collection[str] | None = None) -> str:
    """The same of nodes; without ``among`` of all that were seen."""
    everyone = case.nodes if among is None else among
    hit = sorted(set(hit))
    spared = sorted(set(everyone) - set(hit))
    if not hit:
        return ""
    if not spared:
        return f"hit: all {len(hit)} nodes" if len(hit) > 1 else f"hit: {hit[0]}, the only one"
    if (told := _parted(_node_traits(case), hit, spared)) is not None:
        mine, theirs = told
        here, there = _were(mine, len(hit)), _were(theirs, len(spared))
        return f"hit: {listed(hit, _NAMED)}, {here}; not hit: {listed(spared, _NAMED)}, {there}"
    return f"hit: {listed(hit, _NAMED)}; not hit: {listed(spared, _NAMED)}"


def _were(trait: str, number: int) -> str:
    return trait.replace("that were ", "that was ", 1) if number == 1 else trait


def around_the_fault(case: Case, moments_ns: Iterable[int]) -> str:
    """Whether the first injected fault can have anything to do with it."""
    moments, fault = list(moments_ns), case.first_fault_ns
    if not moments or fault is None:
        return ""
    before = sum(1 for t_ns in moments if t_ns < fault)
    return f"{before} of {len(moments)} before the first fault" if before else ""


def case_node(case: Case, pod: str) -> str:
    fate = case.fates.get(pod)
    return fate.node_name if fate else ""


def _parted(traits: list[tuple[Trait, str]], hit: list[str], spared: list[str]) -> tuple[str, str] | None:
    """The first trait that all hit ones share and no spared one has; ``{}`` in the words is the trait's value."""
    for trait, words in traits:
        mine, theirs = {trait(name) for name in hit}, {trait(name) for name in spared}
        if len(mine) == 1 and None not in mine | theirs and not mine & theirs:
            other = next(iter(theirs)) if len(theirs) == 1 else None
            return words.format(next(iter(mine))), words.format(other) if other else "others"
    return None


def _pod_traits(case: Case) -> list[tuple[Trait, str]]:
    replaced = {replica.pod for replica in case.replicas if replica.predecessor}

    def node_age(pod: str) -> str | None:
        return _age(case, case.nodes.get(case_node(case, pod)))

    def pod_age(pod: str) -> str | None:
        fate = case.fates.get(pod)
        if fate is None:
            return None
        if fate.life.born_ns < case.start_ns:
            return "that were there before the load"
        return "that came as replacements" if pod in replaced else "that were added during the load"

    def node(pod: str) -> str | None:
        return case_node(case, pod) or None

    return [(node_age, "on nodes {}"), (node, "on {}"), (pod_age, "{}")]


def _node_traits(case: Case) -> list[tuple[Trait, str]]:
    def age(name: str) -> str | None:
        return _age(case, case.nodes.get(name))

    def kind(name: str) -> str | None:
        node = case.nodes.get(name)
        return None if node is None else "spot" if is_spot(node.last) else "on demand"

    return [(age, "{}"), (kind, "{}")]


def _age(case: Case, node: Life | None) -> str | None:
    if node is None:
        return None
    return "that came during the load" if node.born_ns > case.start_ns else "that were there before"
