"""How true a fault is on a target, and why a target cannot have it."""

from __future__ import annotations

import enum
from collections.abc import Mapping

TARGETS = ("embedded", "controlplane", "node", "kind", "kubeconfig")
"""Every target there is, for faults whose fidelity is the same on all."""

EMBEDDED, VIRTUAL, CONTROL_PLANE, KUBECONFIG = "embedded", "embedded-virtual", "controlplane", "kubeconfig"
NODE, KIND = "node", "kind"
REAL_KUBELETS = frozenset({NODE, KIND, KUBECONFIG})

NOT_BUILT = "not built"
NO_HAND = "the Kubernetes API alone cannot do it, and in a cluster of others the harness has no other hand"
"""On ``kubeconfig``, unless a fault says more."""


class Fidelity(enum.StrEnum):
    """UNSUPPORTED is an error before the run, never a silent skip."""

    NATIVE = "native"
    EMULATED = "emulated"
    UNSUPPORTED = "unsupported"


FidelityMap = Mapping[str, Fidelity]
"""By target; a target that is not named is unsupported."""

EVERYWHERE: FidelityMap = dict.fromkeys(TARGETS, Fidelity.NATIVE)
ON_FAKES: FidelityMap = {"embedded": Fidelity.EMULATED, "controlplane": Fidelity.EMULATED}
"""For what nodes, cloud, gateway, metrics or pods of ours play: both targets stand on them."""
BESIDE_REAL_NODES: FidelityMap = {**ON_FAKES, NODE: Fidelity.EMULATED, KIND: Fidelity.EMULATED}
"""For what our cloud, gateway or metrics play, wherever the machines are."""
ON_MACHINES: FidelityMap = {**ON_FAKES, NODE: Fidelity.NATIVE, KIND: Fidelity.NATIVE}
"""For what hollow machines play, and what is done to real ones by ``harness.targets.machines``."""
ON_FAKE_CONTROL_PLANE: FidelityMap = {"embedded": Fidelity.EMULATED}
"""For what the API server or a controller of ours plays."""


def fidelity_in(fidelity: FidelityMap, target: str) -> Fidelity:
    """What a fault is on embedded it is in virtual time, too, unless it says otherwise."""
    known = fidelity.get(target)
    if known is None and target == VIRTUAL:
        known = fidelity.get(EMBEDDED)
    return known or Fidelity.UNSUPPORTED
