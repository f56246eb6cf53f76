"""Every fault there is, by the name that experiments use. Actions, plan, docs and "did you mean" come from here."""

from __future__ import annotations

from harness.faults.catalogue.apply_objects import ApplyObjects
from harness.faults.catalogue.capacity import CapacityRefused, GroupHalfDelivered, InstanceTrouble
from harness.faults.catalogue.component_stopped import ComponentStopped
from harness.faults.catalogue.consolidation import Consolidation
from harness.faults.catalogue.control_plane import ApiErrors, PartStopped, WatchCut, WebhookDown
from harness.faults.catalogue.device_allocate import DeviceAllocate
from harness.faults.catalogue.device_plugin import DevicePluginDown
from harness.faults.catalogue.device_plugin_late import DevicePluginLate
from harness.faults.catalogue.device_unhealthy import DeviceCount, DeviceUnhealthy
from harness.faults.catalogue.load import ClientHangUps, FlashCrowd, LongPrompts, TenantFlood
from harness.faults.catalogue.metrics_outage import MetricsOutage
from harness.faults.catalogue.network import EndpointsLate, GatewayRestart, LinkTrouble
from harness.faults.catalogue.node_condition import NodeCondition
from harness.faults.catalogue.node_deleted import NodeDeleted
from harness.faults.catalogue.node_drain import NodeDrain
from harness.faults.catalogue.node_partition import NodePartition
from harness.faults.catalogue.node_pressure import NodePressure
from harness.faults.catalogue.node_silent import NodeSilent
from harness.faults.catalogue.pause_load import PauseLoad
from harness.faults.catalogue.pod_metrics_down import PodMetricsDown
from harness.faults.catalogue.pods import PodCrashLoop, PodLoss, PodOomKill, ReadinessFlap
from harness.faults.catalogue.rollout import BadImage, RollingRestart
from harness.faults.catalogue.slow_start import SlowStart
from harness.faults.catalogue.spot_interruption import SpotInterruption
from harness.faults.fault import Fault

FAULTS: dict[str, type[Fault]] = {
    fault.name: fault
    for fault in (
        SpotInterruption,
        NodeSilent,
        NodePartition,
        NodePressure,
        NodeCondition,
        NodeDeleted,
        NodeDrain,
        Consolidation,
        DevicePluginLate,
        DevicePluginDown,
        DeviceUnhealthy,
        DeviceCount,
        DeviceAllocate,
        PodLoss,
        PodOomKill,
        PodCrashLoop,
        ReadinessFlap,
        PodMetricsDown,
        RollingRestart,
        BadImage,
        SlowStart,
        CapacityRefused,
        GroupHalfDelivered,
        InstanceTrouble,
        MetricsOutage,
        ApiErrors,
        PartStopped,
        ComponentStopped,
        WatchCut,
        WebhookDown,
        LinkTrouble,
        GatewayRestart,
        EndpointsLate,
        FlashCrowd,
        TenantFlood,
        LongPrompts,
        ClientHangUps,
        ApplyObjects,
        PauseLoad,
    )
}
