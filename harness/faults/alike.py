"""Which faults can show the same: while one of them is in force, what is seen proves nothing of the other.

Most signs name their own target (a node, a pod), or carry a reason of their own. Those of the way to the pods, of the
cloud's refusals and of a client's lease do not: whoever looks sees that it happened, not why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import ValidationError

from harness.faults.catalogue.capacity import CapacityRefused, GroupHalfDelivered, InstanceTrouble
from harness.faults.catalogue.component_stopped import ComponentStopped
from harness.faults.catalogue.consolidation import Consolidation
from harness.faults.catalogue.control_plane import ApiErrors, ClientFault, PartStopped, WebhookDown
from harness.faults.catalogue.load import ClientHangUps
from harness.faults.catalogue.metrics_outage import MetricsOutage
from harness.faults.catalogue.network import GatewayRestart, LinkTrouble
from harness.faults.catalogue.pods import ReadinessFlap
from harness.faults.catalogue.rollout import BadImage
from harness.faults.catalogue.slow_start import SlowStart
from harness.faults.catalogue.spot_interruption import SpotInterruption
from harness.faults.fault import Fault, Strike, Target
from harness.faults.holding import HoldFault
from harness.faults.registry import FAULTS


def _link(fault: Fault, other: Fault) -> bool:
    """A slow way is only another way's work; a request that is lost or broken off, also that of what serves it."""
    assert isinstance(fault, LinkTrouble)
    breaks = bool(fault.loss_ratio or fault.reset_ratio)
    return isinstance(other, LinkTrouble) or (
        breaks and (isinstance(other, GatewayRestart) or other.kind in (Target.NODES, Target.PODS))
    )


def _gateway(fault: Fault, other: Fault) -> bool:
    """Clients of a gateway that restarts are cut off, as by a way that resets them; one that loses them is silent."""
    resets = isinstance(other, LinkTrouble) and other.link == "clients" and bool(other.reset_ratio)
    return resets or isinstance(other, GatewayRestart)


def _hang_ups(fault: Fault, other: Fault) -> bool:
    """The gateway counts each client that is gone, whoever cut it off."""
    return isinstance(other, LinkTrouble | GatewayRestart | ClientHangUps)


def _client(fault: Fault, other: Fault) -> bool:
    assert isinstance(fault, ClientFault)
    return isinstance(other, ApiErrors | PartStopped) and other.client == fault.client


def _webhook(fault: Fault, other: Fault) -> bool:
    """Pods are not made, either, while their controller is in trouble."""
    return isinstance(other, ApiErrors | PartStopped) and other.client == "kube-controller-manager"


def _refused(fault: Fault, other: Fault) -> bool:
    assert isinstance(fault, CapacityRefused)
    if isinstance(other, CapacityRefused):
        return other.pool == fault.pool or other.why in ("zone", "throttled")
    if isinstance(other, SpotInterruption):
        return other.then_out_of_stock != "nothing"
    return isinstance(other, GroupHalfDelivered) and other.pool == fault.pool


def _half_group(fault: Fault, other: Fault) -> bool:
    """Instances that came go again: whoever takes nodes away can be the reason."""
    return other.kind is Target.NODES or isinstance(other, Consolidation | CapacityRefused | GroupHalfDelivered)


def _instance(fault: Fault, other: Fault) -> bool:
    assert isinstance(fault, InstanceTrouble)
    late = fault.how != "wrong_gpu"
    return late and isinstance(other, InstanceTrouble) and other.pool == fault.pool and other.how != "wrong_gpu"


def _metrics(fault: Fault, other: Fault) -> bool:
    return isinstance(other, ComponentStopped)


def _slow_start(fault: Fault, other: Fault) -> bool:
    """An image that does not come, or a server that does not get ready, whatever keeps it."""
    assert isinstance(fault, SlowStart)
    pulls = fault.how in _PULLS
    if isinstance(other, SlowStart):
        return (other.how in _PULLS) is pulls
    return isinstance(other, BadImage) if pulls else isinstance(other, ReadinessFlap)


_PULLS = ("image", "rate_limit")


ALIKE: Mapping[type[Fault], Callable[[Fault, Fault], bool]] = {
    LinkTrouble: _link,
    GatewayRestart: _gateway,
    ClientHangUps: _hang_ups,
    ApiErrors: _client,
    PartStopped: _client,
    WebhookDown: _webhook,
    CapacityRefused: _refused,
    GroupHalfDelivered: _half_group,
    InstanceTrouble: _instance,
    MetricsOutage: _metrics,
    SlowStart: _slow_start,
}


def alike(fault: Fault, other: Fault) -> bool:
    """Whether ``other``, while it is in force, may show the very signs by which ``fault`` is looked for."""
    may = ALIKE.get(type(fault))
    return may is not None and may(fault, other)


def alike_in_force(strike: Strike) -> tuple[str, ...]:
    """Ids of the faults of this run that have not been taken back yet, and may show the same, by the undo journal."""
    if type(strike.fault) not in ALIKE:
        return ()
    found: list[str] = []
    for entry in strike.ground.undo.replay().pending:
        about = entry.about
        if about is None or entry.fault_id == strike.fault_id or about.fault not in FAULTS:
            continue
        try:
            other = FAULTS[about.fault].model_validate(about.arguments)
        except ValidationError:
            continue  # of no run of this version
        # A fault that holds takes its change back itself. What was done once, and is nobody's to take back, stays open.
        age_s = strike.ground.clock.scenario_s(strike.ground.clock.now_ns() - entry.t_ns)
        over = not isinstance(other, HoldFault | GatewayRestart) and age_s > other.longest_s()
        if not over and alike(strike.fault, other):
            found.append(entry.fault_id)
    return tuple(dict.fromkeys(found))
