"""Refusals before anything is touched: a fault the target cannot have, and nodes that nobody opened to faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Protocol

from harness.errors import GuardRefused
from harness.faults.fault import Fault, fidelity_on, why_unsupported
from harness.faults.fidelity import EMBEDDED, VIRTUAL, Fidelity
from harness.faults.pick import FleetNode
from harness.faults.registry import FAULTS
from harness.kube.port import Json
from harness.spec.safety import GuardsSpec

OPT_IN_LABEL = "gpu-harness.dev/faults"
OPT_IN_VALUE = "allowed"
STARTED_BY_US = frozenset({EMBEDDED, VIRTUAL, "controlplane", "node", "kind"})
"""Targets that the harness itself brought up: all their nodes are there to be broken."""


class Planned(Protocol):
    """What the guards need of a planned action."""

    @property
    def fault_id(self) -> str: ...

    @property
    def name(self) -> str: ...


def check_guards(actions: Sequence[Planned], target: str) -> dict[str, Fidelity]:
    """Fidelity by fault id, for the report. GuardRefused names every fault the target cannot have."""
    found = {action.fault_id: fidelity_on(FAULTS[action.name], target) for action in actions if action.name in FAULTS}
    refused = [action for action in actions if found.get(action.fault_id) is Fidelity.UNSUPPORTED]
    if refused:
        able = sorted({t for action in refused for t in FAULTS[action.name].fidelity})
        said = ", ".join(f"{a.fault_id} (unsupported: {why_unsupported(FAULTS[a.name], target)})" for a in refused)
        raise GuardRefused(
            f"target {target} does not support {said}",
            hint=f"run it on {', '.join(able)}, or take the action out" if able else "take the action out",
        )
    return found


class PlannedFault(Planned, Protocol):
    @property
    def fault(self) -> Fault: ...


def check_arguments(actions: Sequence[PlannedFault], target: str) -> None:
    """GuardRefused names every fault that the target has, but not in this way."""
    said = [f"{a.fault_id} ({why})" for a in actions if (why := a.fault.cannot_on(target)) is not None]
    if said:
        raise GuardRefused(
            f"target {target} cannot do this: {', '.join(said)}", hint="change its arguments, or take the action out"
        )


def check_targets(fault_id: str, targets: Sequence[str], count: int, fleet: Sequence[FleetNode], target: str) -> None:
    """The nodes of one injection: no more than asked for, each once, each there, each open to faults."""
    if len(targets) > count or len(set(targets)) != len(targets):
        raise GuardRefused(f"{fault_id}: {', '.join(targets)} are more nodes than the {count} it may hit")
    nodes = {node.name: node for node in fleet}
    if missing := [name for name in targets if name not in nodes]:
        raise GuardRefused(f"{fault_id}: no node {', '.join(missing)} in the cluster, or it is leaving already")
    if target in STARTED_BY_US:
        return
    closed = [name for name in targets if nodes[name].labels.get(OPT_IN_LABEL) != OPT_IN_VALUE]
    if closed:
        raise GuardRefused(
            f"{fault_id}: {', '.join(closed)} did not opt in to faults",
            hint=f"kubectl label node {' '.join(closed)} {OPT_IN_LABEL}={OPT_IN_VALUE}",
        )


SYSTEM_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease"})


def check_system_namespace(fault_id: str, namespace: str) -> None:
    if namespace in SYSTEM_NAMESPACES:
        raise GuardRefused(f"{fault_id}: namespace {namespace} is the system's own, and never a workload's")


def check_namespace(fault_id: str, namespace: Json) -> None:
    """The workload's namespace, in a cluster that we did not start."""
    if not _opted_in(namespace):
        name = namespace["metadata"]["name"]
        raise GuardRefused(
            f"{fault_id}: namespace {name} did not opt in to faults",
            hint=f"kubectl label namespace {name} {OPT_IN_LABEL}={OPT_IN_VALUE}",
        )


def check_pool(fault_id: str, pool: Json) -> None:
    """A NodePool that a fault is to hit, in a cluster that we did not start."""
    if not _opted_in(pool):
        name = pool["metadata"]["name"]
        raise GuardRefused(
            f"{fault_id}: NodePool {name} did not opt in to faults",
            hint=f"kubectl label nodepool {name} {OPT_IN_LABEL}={OPT_IN_VALUE}",
        )


def _opted_in(obj: Json) -> bool:
    return (obj["metadata"].get("labels") or {}).get(OPT_IN_LABEL) == OPT_IN_VALUE


class Hit(Protocol):
    """What the caps need of a planned fault."""

    @property
    def fault_id(self) -> str: ...

    @property
    def reach(self) -> tuple[str, ...]: ...

    @property
    def reach_at_once(self) -> int: ...

    @property
    def blast_radius(self) -> Mapping[str, int]: ...

    @property
    def starts_s(self) -> float: ...

    @property
    def ends_s(self) -> float: ...

    @property
    def takes_nodes(self) -> bool: ...


def check_caps(faults: Sequence[Hit], guards: GuardsSpec, nodes_total: int) -> None:
    """Refuses a plan whose faults together hit more than the experiment allows. GPUs are counted once per hit.

    A fault on a pool counts with all nodes of it, at once with as many as it may take at a time. A node that is lost
    counts until another can have come for it."""
    on_nodes = [fault for fault in faults if fault.reach]
    nodes = {name for fault in on_nodes for name in fault.reach}
    _cap("nodes_max", "nodes in all", len(nodes), guards.nodes_max, sorted(nodes))
    gpus = sum(fault.blast_radius.get("gpus", 0) for fault in on_nodes)
    _cap("gpus_max", "GPUs in all", gpus, guards.gpus_max, sorted(nodes))
    if nodes_total:
        percent = 100 * len(nodes) / nodes_total
        _cap("nodes_percent_max", f"% of {nodes_total} nodes", percent, guards.nodes_percent_max, sorted(nodes))
    for fault in on_nodes:
        # The most nodes are in trouble at once where some fault begins.
        then = [f for f in on_nodes if f.starts_s <= fault.starts_s <= _away_until_s(f)]
        names = sorted({name for f in then for name in f.reach})
        whole = {name for f in then if f.reach_at_once >= len(f.reach) for name in f.reach}
        in_turn = sum(f.reach_at_once for f in then if f.reach_at_once < len(f.reach))
        at_once = min(len(names), len(whole) + in_turn)
        when = f"at once at scenario second {fault.starts_s:g}"
        _cap("nodes_at_once_max", f"nodes {when}", at_once, guards.nodes_at_once_max, names)
        gpus = sum(ceil(f.blast_radius.get("gpus", 0) * f.reach_at_once / len(f.reach)) for f in then)
        _cap("gpus_at_once_max", f"GPUs {when}", gpus, guards.gpus_at_once_max, names)
        if nodes_total:
            percent, most = 100 * at_once / nodes_total, guards.nodes_percent_at_once_max
            _cap("nodes_percent_at_once_max", f"% of {nodes_total} nodes {when}", percent, most, names)


REPLACED_S = 180.0
"""Scenario seconds: what a cloud needs to boot a GPU node, and its kubelet to show the GPUs (two to three minutes)."""


def _away_until_s(fault: Hit) -> float:
    return fault.ends_s + (REPLACED_S if fault.takes_nodes else 0.0)


def _cap(key: str, what: str, hit: float, most: int | None, names: Sequence[str]) -> None:
    if most is not None and hit > most:
        raise GuardRefused(
            f"the faults would hit {hit:g} {what} ({', '.join(names)}), more than guards.{key} allows: {most}",
            hint="plan fewer, or raise the cap if that is what you mean",
        )
