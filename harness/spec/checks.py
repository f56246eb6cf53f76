"""What an experiment asks to be judged: one small model per check. Limits ending in ``_s_max`` are scenario seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, Strict, model_validator

from harness.spec.document import did_you_mean
from harness.spec.model import Count, CountFromZero, Ratio, Seconds, SecondsFromZero, SpecModel, Text, mistake

PhaseName = Literal["warm_up", "steady", "fault", "recovery", "all"]

LATENCIES: tuple[str, ...] = ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms", "ttft_sent_ms")
QUANTILES: dict[str, float] = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
QUANTILE_KEYS: tuple[str, ...] = tuple(f"{latency}_{p}" for latency in LATENCIES for p in QUANTILES)


class CheckSpec(SpecModel):
    """Base of all; ``name`` is the key in the experiment file and in ``harness.checks.CHECKS``."""

    name: ClassVar[str]


@dataclass(frozen=True, slots=True)
class QuantileLimit:
    """``ttft_ms_p95: 3000`` as parts: at least ``quantile`` of the requests must have ``metric`` ≤ ``limit_ms``."""

    key: str
    metric: str
    quantile: float
    limit_ms: float


_SLICE_KEYS = ("phase", "tenant", "priority", "prompt_tokens_min", "prompt_tokens_max")


class SloSpec(CheckSpec):
    """Latency limits by quantile and a floor for the share of good requests, judged on one phase.

    ``tenant``, ``priority`` and the bounds of ``prompt_tokens`` narrow it to some of the requests; an experiment may
    have several ``slo``, each for its own."""

    name: ClassVar[str] = "slo"

    limits: tuple[QuantileLimit, ...] = ()
    good_ratio_min: Ratio | None = None
    phase: PhaseName = "all"
    tenant: Text | None = None
    priority: Annotated[int, Strict()] | None = None
    """As the load profile gives it to a tenant; 0 is every other's."""
    prompt_tokens_min: CountFromZero | None = None
    prompt_tokens_max: CountFromZero | None = None

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        return ("limits", "good_ratio_min", *_SLICE_KEYS)

    @property
    def slice(self) -> str:
        """Which requests, beside the phase; empty for all."""
        low, high = self.prompt_tokens_min, self.prompt_tokens_max
        parts = [
            f"of tenant {self.tenant}" if self.tenant is not None else "",
            f"of priority {self.priority}" if self.priority is not None else "",
            f"with {low or 0} prompt tokens or more" if low is not None and high is None else "",
            f"with {low or 0} to {high} prompt tokens" if high is not None else "",
        ]
        return " ".join(part for part in parts if part)

    @model_validator(mode="before")
    @classmethod
    def _gather_limits(cls, data: Any) -> Any:
        """Turns the quantile keys, which are many, into ``limits``. Runs before unknown keys are looked for."""
        if not isinstance(data, dict) or isinstance(data.get("limits"), tuple):
            return data
        limits: list[QuantileLimit] = []
        rest: dict[str, Any] = {}
        for key, value in data.items():
            if key == "good_ratio_min" or key in _SLICE_KEYS:
                rest[key] = value
            elif key in QUANTILE_KEYS:
                limits.append(_limit(key, value))
            else:
                raise mistake(f"the key {key!r} is not known here", key=(key,), hint=_slo_hint(str(key)))
        if not limits and data.get("good_ratio_min") is None:
            raise mistake("sets no limit", hint="give at least one, such as ttft_ms_p95: 3000 or good_ratio_min: 0.95")
        return {"limits": tuple(limits), **rest}


def _limit(key: str, value: Any) -> QuantileLimit:
    if isinstance(value, bool) or not isinstance(value, int | float):
        seen = f'"{value}"' if isinstance(value, str) else str(value)
        number = re.match(r"\s*[0-9.]+", value) if isinstance(value, str) else None
        hint = "the unit stands in the key; write only the number" + (f", as in {key}: 3000" if number else "")
        raise mistake(f"is {seen}, but must be a number of milliseconds", key=(key,), hint=hint)
    if not 0 < value < float("inf"):
        raise mistake(f"is {value}, but must be more than 0", key=(key,))
    latency, _, quantile = key.rpartition("_")
    return QuantileLimit(key, latency, QUANTILES[quantile], float(value))


def _slo_hint(key: str) -> str:
    wanted = re.fullmatch(r"(.*)_(p[0-9.]+)", key)
    if wanted and wanted[1] in LATENCIES:
        return f"known quantiles: {', '.join(QUANTILES)}"
    others = ["good_ratio_min", *_SLICE_KEYS, *(f"{latency}_p95" for latency in LATENCIES)]
    near = did_you_mean(key, [*QUANTILE_KEYS, "good_ratio_min", *_SLICE_KEYS]).split("? known")[0]
    prefix = f"{near}? " if near.startswith("did you mean") else ""
    return f"{prefix}known: {', '.join(others)}, and the same with {', '.join(p for p in QUANTILES if p != 'p95')}"


class ScaleUpSpec(CheckSpec):
    """Every added replica serves its first token within ``ready_s_max`` of the load step that asked for it.

    Each other limit is on one stage, from the mark before it that the replica needed."""

    name: ClassVar[str] = "scale_up"

    ready_s_max: Seconds
    readable_s_max: Seconds | None = None
    decided_s_max: Seconds | None = None
    claimed_s_max: Seconds | None = None
    registered_s_max: Seconds | None = None
    usable_s_max: Seconds | None = None
    started_s_max: Seconds | None = None
    loaded_s_max: Seconds | None = None
    served_s_max: Seconds | None = None


class GracefulDrainSpec(CheckSpec):
    """At most ``streams_lost_max`` answers are cut on pods that were asked to go."""

    name: ClassVar[str] = "graceful_drain"

    streams_lost_max: CountFromZero = 0


class PdbSpec(CheckSpec):
    """No eviction overdraws a disruption budget."""

    name: ClassVar[str] = "pdb"


class GangSpec(CheckSpec):
    """A gang binds whole within ``atomicity_s_max`` or not at all; one that lost a member is whole again in time."""

    name: ClassVar[str] = "gang"

    atomicity_s_max: Seconds
    whole_again_s_max: Seconds | None = None
    """Defaults to ``atomicity_s_max``. A member that was lost may have to wait for a node; binding never does."""
    of: Literal["kubernetes", "kai", "volcano", "coscheduling"] = "kubernetes"
    """Whose PodGroups are recorded, with the least number of members that each asks for."""


class ScaleDownSpec(CheckSpec):
    """Once the load is gone the workload is back at its floor in time, without thrash and without losing work."""

    name: ClassVar[str] = "scale_down"

    floor_s_max: Seconds = 600.0
    reversal_s_min: SecondsFromZero = 120.0
    """A step that turns the one before it back within this time, with no load step between them, is thrash."""
    reversals_max: CountFromZero = 0
    node_life_s_min: SecondsFromZero = 120.0
    """A node that came and went again sooner, though no fault hit it, was not worth its start."""
    streams_lost_max: CountFromZero = 0


Price = Annotated[float, Strict(), Field(gt=0)]


class CapacitySpec(CheckSpec):
    """Capacity follows need: no more nodes than needed, no need unmet for long, no more idle or cost than allowed."""

    name: ClassVar[str] = "capacity"

    nodes_over_max: CountFromZero = 1
    """Nodes there at once beyond what all pods that asked for GPUs would have filled; partly filled ones happen."""
    short_s_max: Seconds = 600.0
    gpu_idle_ratio_max: Ratio | None = None
    cost_per_hour_max: Price | None = None
    cost_per_million_tokens_max: Price | None = None
    spot_ratio_max: Ratio | None = None
    unregistered_max: CountFromZero | None = None
    """Instances at once that were launched, are paid for, and had no Node two minutes later."""
    protected_ready_min: CountFromZero | None = None
    """Ready replicas on nodes that are not spot, at every moment of the load."""


class DeviceSpec(CheckSpec):
    """No GPU is given out twice, no pod is refused by its node, and a GPU that is lost is found again in time."""

    name: ClassVar[str] = "device"

    admission_failures_max: CountFromZero = 0
    lost_s_max: Seconds = 300.0
    gpu_products: tuple[Text, ...] = ()
    """Labels `nvidia.com/gpu.product` of the nodes that pods with GPUs may run on; any, when there is none."""


class ClaimsSpec(CheckSpec):
    """A device that pods get by claim is in one claim at a time, and its taint takes off the pods that hold it."""

    name: ClassVar[str] = "claims"

    leave_s_max: Seconds = 60.0
    waiting_s_max: Seconds | None = None


class ControllersSpec(CheckSpec):
    """One writer decides the size of a workload: it acts on what it reads, and it makes up its mind."""

    name: ClassVar[str] = "controllers"

    fights_max: CountFromZero = 0
    """Times that one writer put back what another had just changed."""
    oscillations_max: CountFromZero = 2
    """Times that a size went away and came back within ``oscillation_s_max``, whoever wrote it."""
    oscillation_s_max: Seconds = 120.0
    react_s_max: Seconds = 45.0
    """For how long an autoscaler below its maximum may read too much and do nothing: three syncs of the HPA."""


class MetricsPathSpec(CheckSpec):
    """What an autoscaler reads follows the load in time, has no holes, and is not 0 while requests wait."""

    name: ClassVar[str] = "metrics_path"

    seen_s_max: Seconds = 60.0
    hole_s_max: Seconds = 60.0


class RequestsSpec(CheckSpec):
    """Both books agree: every answer was given once, and no token of it was lost or repeated."""

    name: ClassVar[str] = "requests"

    tokens_lost_max: CountFromZero = 0
    answers_repeated_max: CountFromZero = 0


class RecoverySpec(CheckSpec):
    """After the last fault the system is steady again within a bound, and nothing of it is left over."""

    name: ClassVar[str] = "recovery"

    steady_s_max: Seconds = 300.0
    hold_s_min: SecondsFromZero = 15.0
    """It must stay steady for this long to count."""


class RoutingSpec(CheckSpec):
    """No request is given to a replica that is far behind while another stands ready with room."""

    name: ClassVar[str] = "routing"

    apart_max: Count = 8
    """So many requests more than another that is ready are too many."""
    misplaced_ratio_max: Ratio = 0.05
    known_s: SecondsFromZero = 15.0
    """A replica is known to the router only so long after it was Ready."""


class QuotaSpec(CheckSpec):
    """A queue (Kueue) gives no more GPUs than its quota, and holds nobody back for whom there is quota."""

    name: ClassVar[str] = "quota"

    over_s_max: SecondsFromZero = 5.0
    """So long an eviction and the admission that it made room for may seem to overlap."""
    waiting_s_max: Seconds = 60.0
    leave_s_max: Seconds = 120.0
    """For a pod whose workload lost its quota, its grace included."""
    gates_s_max: Seconds = 60.0
    unadmitted_s_max: Seconds = 120.0
    requeued_s_max: Seconds = 300.0


CHECK_SPECS: dict[str, type[CheckSpec]] = {
    spec.name: spec
    for spec in (
        SloSpec, ScaleUpSpec, ScaleDownSpec, GracefulDrainSpec, PdbSpec, GangSpec, CapacitySpec, DeviceSpec,
        ClaimsSpec, ControllersSpec, MetricsPathSpec, RequestsSpec, RecoverySpec, RoutingSpec, QuotaSpec,
    )
}  # fmt: skip
