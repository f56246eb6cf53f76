"""Nodes that no fault may hit, whatever its selector says: those of the observer, and of protected system pods."""

from __future__ import annotations

import socket

from harness.faults.guards import SYSTEM_NAMESPACES
from harness.kube.port import PDB, POD, Json, Kube
from harness.selectors import Selector, selector_of

OBSERVER_LABEL = "gpu-harness.dev/observer"
"""On the pods of the harness, of its gateway and of what it measures with: their node is left alone."""


async def spared_nodes(kube: Kube, here: str | None = None) -> dict[str, str]:
    """By node, why it is spared. ``here``: this machine's name, which within a cluster is that of our own pod."""
    here = socket.gethostname() if here is None else here
    budgets: dict[str, list[tuple[str, Selector]]] = {}
    for budget in (await kube.list(PDB)).items:
        meta = budget["metadata"]
        if meta["namespace"] in SYSTEM_NAMESPACES:
            chosen = selector_of((budget.get("spec") or {}).get("selector"))
            budgets.setdefault(meta["namespace"], []).append((meta["name"], chosen))
    spared: dict[str, str] = {here: "the harness runs on it"} if here else {}
    for pod in (await kube.list(POD)).items:
        node = str((pod.get("spec") or {}).get("nodeName") or "")
        if node and (why := _why(pod, here, budgets)) is not None:
            spared.setdefault(node, why)
    return spared


def _why(pod: Json, here: str, budgets: dict[str, list[tuple[str, Selector]]]) -> str | None:
    meta = pod["metadata"]
    labels, name = meta.get("labels") or {}, f"{meta.get('namespace')}/{meta['name']}"
    if here and meta["name"] == here:
        return f"the harness runs there, as {name}"
    if OBSERVER_LABEL in labels:
        return f"{name} observes the run"
    for budget, chosen in budgets.get(meta.get("namespace") or "", ()):
        if chosen.matches(labels):
            return f"{name} is the system's, and PodDisruptionBudget {budget} protects it"
    return None
