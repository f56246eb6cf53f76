"""Nodes that were ordered: too many, too dear, given up too soon, never used."""

from __future__ import annotations

from collections.abc import Iterator

from harness.checks.units import count, listed
from harness.diagnosis.case import SHOWN, Case
from harness.diagnosis.scope import nodes_hit
from harness.diagnosis.suspect import CLOUD, PROVISIONER, WORKLOAD, Sure, Suspect
from harness.history.gpus import POOL, bought, price_of
from harness.history.lives import Life, labels_of, node_of_claim, without_room
from harness.history.waiting import refused
from harness.verdict import Evidence

_COSTS = frozenset({"capacity", "baseline"})
_AT_ONCE_S = 5.0


def orders(case: Case) -> Iterator[Suspect]:
    claims = [c for c in case.of("NodeClaim") if c.born_ns > case.start_ns]
    yield from _too_many(case, claims)
    yield from _given_up(case)
    yield from _dear(case)
    yield from _unregistered(case, claims)
    yield from _other_gpus(case)
    yield from _limits(case)


def _unregistered(case: Case, claims: list[Life]) -> Iterator[Suspect]:
    if not case.number("capacity", "instances_without_node"):
        return
    lost = [c for c in claims if node_of_claim(c) not in case.nodes]
    if lost:
        act = f"started {count(len(lost), 'instance')} that never registered as a Node, and are paid for"
        rows = tuple(
            Evidence(f"objects:{c.seen[-1].index}", c.born_ns, f"NodeClaim {c.name}: no Node") for c in lost[:SHOWN]
        )
        yield Suspect(
            f"{CLOUD}, or the image of the machine,",
            act,
            lost[0].born_ns,
            _COSTS | {"scale_up", "recovery"},
            seen=rows,
            change="look at the instance's console: machine image, user data, bootstrap token, network",
        )


def _other_gpus(case: Case) -> Iterator[Suspect]:
    """By the finding of ``device``: pods on another product than the workload was declared for."""
    rows = [row for row in case.evidence("device") if row.facts.get("product")]
    if rows:
        products = listed(sorted({str(row.facts["product"]) for row in rows}))
        nodes = sorted({str(row.facts["node"]) for row in rows})
        act = (
            f"brought {listed(nodes)} with {products}, which the workload was not declared for:"
            f" {count(len(rows), 'pod')} "
        )
        act += "run there"
        yield Suspect(
            PROVISIONER,
            act,
            rows[0].t_ns or 0,
            frozenset({"device", "slo", "baseline"}),
            scope=nodes_hit(case, nodes),
            seen=tuple(rows[:SHOWN]),
            change="narrow the requirements of its pool to the GPUs that the workload was measured on",
        )


def _too_many(case: Case, claims: list[Life]) -> Iterator[Suspect]:
    """Ordered in one breath: more than the pods without room then can fill."""
    if not case.number("capacity", "nodes_over") or "capacity" not in case.failed:
        return
    batches: list[list[Life]] = []
    for claim in sorted(claims, key=lambda c: c.born_ns):
        if batches and claim.born_ns - batches[-1][-1].born_ns <= case.ns(_AT_ONCE_S):
            batches[-1].append(claim)
        else:
            batches.append([claim])
    waits = [(len(own), _waiting(case, own[0].born_ns), own) for own in batches]
    over = [(n, pods, own) for n, pods, own in waits if n > max(1, len(pods))] or [w for w in waits if w[0] > 1]
    if not over:
        return
    n, pods, own = over[0]
    what = f"{count(n, 'node')} at once for {count(len(pods), 'pod')} without room" + (
        f" ({listed(pods)})" if pods else ""
    )
    act = (
        f"ordered {what}, {count(len(over), 'time')}:"
        f" {count(int(case.number('capacity', 'nodes_over') or 0), 'node')} more than needed"
    )
    rows = tuple(
        Evidence(
            f"objects:{c.seen[0].index}",
            c.born_ns,
            f"NodeClaim {c.name} made, with {count(len(p), 'pod')} without room",
        )
        for _, p, o in waits
        for c in o
    )[:SHOWN]
    multiplied = all(m == n for m, *_ in over)
    scope = f"each order was for {n}: they are multiplied, not repeated" if multiplied and len(over) > 1 else ""
    yield Suspect(
        PROVISIONER,
        act,
        own[0].born_ns,
        _COSTS,
        scope=scope,
        seen=rows,
        change="see its log of these orders, and its batching",
    )


def _waiting(case: Case, t_ns: int) -> list[str]:
    found = []
    for pod in case.of("Pod"):
        at = pod.at(t_ns + case.ns(_AT_ONCE_S) // 5) or pod.at(t_ns)
        if at is not None and without_room(at):
            found.append(pod.name)
    return sorted(found)


def _given_up(case: Case) -> Iterator[Suspect]:
    """By the finding of ``scale_down``: nodes that came and went at once, which no fault had hit."""
    rows = [r for r in case.evidence("scale_down") if r.facts.get("node") and " was there for " in r.text]
    if rows:
        names = [str(r.facts["node"]) for r in rows]
        needed = sorted({pod for r in rows for pod in _waiting(case, (r.t_ns or 0))})
        act = (
            f"gave {listed(names)} up as soon as it came ({rows[0].text})"
            if len(names) == 1
            else f"gave up {count(len(names), 'new node')} at once"
        )
        act += f", while {count(len(needed), 'pod')} waited for room" if needed else ""
        first = min(r.t_ns or 0 for r in rows)
        others = [n.name for n in case.nodes.values() if n.born_ns > case.start_ns and n.name not in names]
        scope = f"hit: {listed(names)}" + (f"; not hit: {listed(others)}, which came later" if others else "")
        yield Suspect(
            PROVISIONER,
            act,
            first,
            frozenset({"scale_down", "scale_up", "capacity", "baseline"}),
            scope=scope,
            seen=tuple(rows),
            otherwise="its reason stands in its log and in the NodeClaim's Events: emptiness, drift, expiry",
        )


def _dear(case: Case) -> Iterator[Suspect]:
    """Nodes of a dearer pool while a cheaper one had them, or could have been asked."""
    if (
        not any(key in f.sentence for f in case.findings if f.check == "capacity" for key in ("cost_per",))
        or "capacity" not in case.failed
    ):
        return
    prices = case.history.run.prices_per_hour
    came = [n for n in case.nodes.values() if n.born_ns > case.start_ns and bought(n.last)]
    priced = [(n, p) for n in came if (p := price_of(n.last, prices)) is not None]
    known = sorted(set(prices.values()))
    dear = [(n, p) for n, p in priced if known and p > known[0] * 2 and p == known[-1]]
    if not dear or len(dear) * 2 < len(priced):
        return
    pools = sorted({str(labels_of(n.last).get(POOL) or "") for n, _ in dear})
    cheaper = [
        f"{name} {price:g}" for name, price in sorted(prices.items(), key=lambda item: item[1]) if price < dear[0][1]
    ]
    act = (
        f"took {len(dear)} of {count(len(priced), 'new node')} from the dearest pool ({listed(pools)}, {dear[0][1]:g}"
        " an hour), though "
    )
    act += f"cheaper ones are there ({listed(cheaper)})"
    rows = tuple(
        Evidence(f"objects:{n.seen[0].index}", n.born_ns, f"{n.name} came, {p:g} an hour") for n, p in priced[:SHOWN]
    )
    yield Suspect(
        PROVISIONER,
        act,
        dear[0][0].born_ns,
        _COSTS,
        seen=rows,
        otherwise=(
            "the cheaper pools may have had none left: no refusal of the cloud is recorded"
            if not _refusals(case)
            else "the cloud refused orders"
        ),
        change="see its weights and requirements of pools, and the prices that it knows",
    )


def _refusals(case: Case) -> bool:
    return any(refused(claim) for claim in case.of("NodeClaim"))


def _limits(case: Case) -> Iterator[Suspect]:
    """What is broken without anybody's act: the size and the kind of what the experiment itself set up."""
    sentence = next((f.sentence for f in case.findings if f.check == "capacity" and "capacity" in case.failed), "")
    if "gpu_idle_ratio" in sentence:
        idle = case.number("capacity", "gpu_idle_ratio")
        act = f"{float(idle or 0):.0%} of GPU time serves nobody: more GPUs are there than replicas ask for"
        nodes = [n.name for n in case.nodes.values() if bought(n.last) and n.gone is None]
        yield Suspect(
            WORKLOAD,
            act,
            case.start_ns,
            _COSTS,
            Sure.EFFECT,
            scope=f"nodes: {listed(nodes)}",
            change="fewer or smaller nodes, or more replicas on them",
        )
    if "spot_ratio" in sentence or "off spot" in sentence:
        low = case.number("capacity", "protected_ready_min")
        act = f"replicas stand on spot nodes, all or too many: {low} of them were off spot at the least"
        if low is None:
            act = f"{float(case.number('capacity', 'spot_ratio') or 0):.0%} of node time is on spot"
        yield Suspect(
            WORKLOAD,
            act,
            case.start_ns,
            _COSTS,
            Sure.SETTING,
            change="keep some replicas off spot: a node affinity, or a second Deployment for the floor",
        )
