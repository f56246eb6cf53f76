"""How long everything of the embedded world takes, in one place, and how ``time_scale`` shortens it.

Durations are written in scenario seconds. ``Timing.draw_s`` and ``Timing.clock_s`` turn them into seconds of the event
loop. Latencies of single tokens are never scaled: they are no business of this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random


@dataclass(frozen=True, slots=True)
class Spread:
    """A duration in scenario seconds: normal around ``mean_s``, cut off at ±3 ``sd_s`` and at 0."""

    mean_s: float
    sd_s: float = 0.0

    def draw_s(self, rng: Random) -> float:
        z = max(-3.0, min(3.0, rng.gauss(0.0, 1.0)))
        return max(0.0, self.mean_s + z * self.sd_s)


@dataclass(frozen=True, slots=True)
class Durations:
    """The stages between a decided node and a served token, and the periods of the control plane.

    Periods and graces are Kubernetes' own defaults (1.37) unless a comment says otherwise.
    """

    # From a NodeClaim to a usable node.
    launch: Spread = Spread(35, 4)  # cloud API accepts → the instance registers its Node
    node_ready: Spread = Spread(8, 1)  # Node registered → Ready
    device_plugin: Spread = Spread(7, 2)  # Node Ready → plugin registered; allocatable ≤ 10 s later
    # From a bound pod to Ready.
    image_pull: Spread = Spread(20, 3)  # first pod of an image on a node; later ones find it there
    container_start: Spread = Spread(1, 0.2)
    model_load: Spread = Spread(15, 1.5)  # weights from a warm page cache and warm-up; the port is closed meanwhile
    # Control plane.
    hpa_sync_s: float = 15
    metrics_scrape_s: float = 15
    lease_renew_s: float = 10
    node_monitor_s: float = 5
    node_monitor_grace_s: float = 50
    provisioner_batch_idle_s: float = 1
    provisioner_batch_max_s: float = 10
    eviction_retry_s: float = 5
    readiness_period_s: float = 5  # only where the pod's probe does not say


PRESETS: dict[str, Durations] = {
    # Assumed, not measured: a pre-pulled base image, streamed weights of an 8B model, a cloud in a good mood.
    "quick": Durations(),
    # Assumed for now: a cold image and a 70B model.
    "slow": Durations(
        launch=Spread(60, 10), node_ready=Spread(15, 3), device_plugin=Spread(25, 5),
        image_pull=Spread(90, 15), model_load=Spread(66, 5),
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations of one world at one time scale (scenario seconds per clock second)."""

    time_scale: float = 1.0
    durations: Durations = field(default_factory=Durations)

    def clock_s(self, scenario_s: float) -> float:
        return scenario_s / self.time_scale

    def draw_s(self, spread: Spread, rng: Random) -> float:
        """A duration in clock seconds."""
        return self.clock_s(spread.draw_s(rng))
