"""What a world is made of: pools, timing, planted bugs. Read from one JSON file that the harness writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any


class PlantedBug(StrEnum):
    """Wrong behaviour on purpose. Each value changes what ``fakes/`` does, never what a check is given.

    What each breaks, and which check must find it, stands in ``tests/matrix/matrix_rows.py``.
    """

    # The model server.
    SERVER_ABORTS_ON_SIGTERM = "server_aborts_on_sigterm"
    SERVER_HANGS_ON_SIGTERM = "server_hangs_on_sigterm"
    SERVER_CRASHES_UNDER_LOAD = "server_crashes_under_load"
    SERVER_ENGINE_DIES = "server_engine_dies"
    SERVER_ENGINE_STUCK = "server_engine_stuck"
    SERVER_NEVER_ANSWERS = "server_never_answers"
    SERVER_SENDS_AWAY = "server_sends_away"
    SERVER_FAILS_SOME_REQUESTS = "server_fails_some_requests"
    SERVER_ANSWERS_LATE = "server_answers_late"
    SERVER_DECODES_SLOWLY = "server_decodes_slowly"
    MODEL_LOADS_SLOWLY = "model_loads_slowly"
    SERVER_HEALTHY_WHILE_LOADING = "server_healthy_while_loading"
    SERVER_STUTTERS = "server_stutters"
    SERVER_CHOKES_ON_LONG_PROMPTS = "server_chokes_on_long_prompts"
    SERVER_SERVES_THE_URGENT_LATE = "server_serves_the_urgent_late"
    # The router in front of it.
    GATEWAY_ROUTES_TO_TERMINATING = "gateway_routes_to_terminating"
    GATEWAY_ROUTES_BEFORE_READY = "gateway_routes_before_ready"
    GATEWAY_CUTS_ALL_ON_CHANGE = "gateway_cuts_all_on_change"
    GATEWAY_CUTS_LONG_ANSWERS = "gateway_cuts_long_answers"
    GATEWAY_RETRIES_MID_STREAM = "gateway_retries_mid_stream"
    GATEWAY_SENDS_TWICE = "gateway_sends_twice"
    GATEWAY_DROPS_TOKENS = "gateway_drops_tokens"
    GATEWAY_REPEATS_TOKENS = "gateway_repeats_tokens"
    GATEWAY_IGNORES_NEW_ENDPOINTS = "gateway_ignores_new_endpoints"
    # A node and its kubelet.
    READY_BEFORE_SERVING = "ready_before_serving"
    GRACE_CUT_SHORT = "grace_cut_short"
    PRE_STOP_SKIPPED = "pre_stop_skipped"
    NODE_NEVER_READY = "node_never_ready"
    IMAGE_PULL_HANGS = "image_pull_hangs"
    DEVICE_PLUGIN_NEVER_COMES = "device_plugin_never_comes"
    DEVICE_PLUGIN_DIES = "device_plugin_dies"
    ALLOCATABLE_LIES = "allocatable_lies"
    GPUS_GIVEN_TWICE = "gpus_given_twice"
    PROBE_NEVER_PASSES = "probe_never_passes"
    SIGTERM_BESIDE_PRE_STOP = "sigterm_beside_pre_stop"
    POD_NEVER_GOES = "pod_never_goes"
    DEAD_NODE_KEEPS_ITS_LEASE = "dead_node_keeps_its_lease"
    # The autoscaler, and what it reads.
    HPA_BLIND = "hpa_blind"
    HPA_HESITATES = "hpa_hesitates"
    HPA_NEVER_SCALES_IN = "hpa_never_scales_in"
    HPA_THRASHES = "hpa_thrashes"
    HPA_READS_EMPTY_AS_ZERO = "hpa_reads_empty_as_zero"
    METRICS_STALE = "metrics_stale"
    METRICS_HOLE = "metrics_hole"
    METRICS_HOLE_AS_ZERO = "metrics_hole_as_zero"
    # Workload controllers, endpoints, budgets, scheduler.
    SECOND_WRITER_OF_REPLICAS = "second_writer_of_replicas"
    REPLICAS_NEVER_CREATED = "replicas_never_created"
    REPLICAS_NEVER_REPLACED = "replicas_never_replaced"
    SCALE_IN_KILLS = "scale_in_kills"
    ENDPOINT_NEVER_ADDED = "endpoint_never_added"
    ENDPOINT_REMOVED_LATE = "endpoint_removed_late"
    BUDGET_COUNTS_UNREADY = "budget_counts_unready"
    EVICTION_IGNORES_BUDGET = "eviction_ignores_budget"
    GANG_BOUND_ONE_BY_ONE = "gang_bound_one_by_one"
    GANG_BOUND_SLOWLY = "gang_bound_slowly"
    GANG_MEMBER_NEVER_REPLACED = "gang_member_never_replaced"
    ORPHANED_PODS_KEPT = "orphaned_pods_kept"
    # Provisioner and cloud.
    DRAIN_IGNORES_PDB = "drain_ignores_pdb"
    DRAIN_TAINTS_ANOTHER_NODE = "drain_taints_another_node"
    INSTANCE_ENDED_UNDRAINED = "instance_ended_undrained"
    NODE_LEFT_OVER = "node_left_over"
    CLAIM_LEFT_OVER = "claim_left_over"
    NEW_NODE_REMOVED_AT_ONCE = "new_node_removed_at_once"
    PROVISIONER_IDLE = "provisioner_idle"
    PROVISIONER_ORDERS_TOO_MANY = "provisioner_orders_too_many"
    PROVISIONER_IGNORES_PRICE = "provisioner_ignores_price"
    INSTANCE_NEVER_BOOTS = "instance_never_boots"
    INTERRUPTION_WITHOUT_EFFECT = "interruption_without_effect"
    NOTICE_CUT_SHORT = "notice_cut_short"
    DRAIN_CORDONS_ANOTHER_NODE = "drain_cordons_another_node"
    DO_NOT_DISRUPT_IGNORED = "do_not_disrupt_ignored"
    # What breaks the premises of a run.
    API_LOSES_WATCH_HISTORY = "api_loses_watch_history"
    DELETION_REFUSED = "deletion_refused"
    CLOCK_OF_A_NODE_IS_OFF = "clock_of_a_node_is_off"
    API_SERVER_REPLACED = "api_server_replaced"


@dataclass(frozen=True, slots=True)
class PoolConfig:
    """A pool of equal instances. ``nodes`` exist at the start; ``stock`` is how many the cloud has, those included."""

    name: str
    capacity_type: str  # "spot" | "on-demand"
    gpus: int = 4
    nodes: int = 0
    stock: int = 1
    cpu: int = 32
    memory_gib: int = 256
    instance_type: str = "gpu.4x"
    gpu_product: str = "NVIDIA-H100-80GB-HBM3"
    zone: str = "zone-a"
    price_per_hour: float = 0.0
    provision: bool = True
    """Whether the provisioner may create nodes here (a pool of fixed nodes says False)."""
    nodepool: str = ""
    """The NodePool that orders from here, where its name is another one. Several pools of one NodePool are its instance
    types, zones and capacity types, each with a price of its own."""
    dra: bool = False
    """Its nodes offer their GPUs in ResourceSlices (dynamic resource allocation), and have no ``nvidia.com/gpu``."""

    @property
    def node_pool(self) -> str:
        return self.nodepool or self.name


@dataclass(frozen=True, slots=True)
class ProcessImage:
    """Containers whose image's name contains ``image`` are real processes: ``command`` with ``{host}``, ``{port}``,
    ``{pod}`` and, for the container's own command line, ``{args}``. ``folders`` is what they read of this machine, for
    targets where they run in containers."""

    image: str
    command: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    """The router in front of the replicas. Limits of 0 are none."""

    policy: str = "least_loaded"  # | "prefix_aware"
    endpoints_lag_s: float = 0.1
    """Scenario seconds until a change of the endpoints counts: a control plane of proxies gathers changes for as long
    (Istio's debounce)."""
    in_flight_max: int = 0
    """Of each replica; who comes then waits in the queue."""
    queue_max: int = 100
    queue_s: float = 10.0
    """Clock seconds that a request waits there at most."""
    answer_s: float = 0.0
    """Clock seconds until an answer must have begun."""
    picker: str = ""
    """HOST:PORT of an endpoint picker that chooses in place of ``policy``."""
    hold_s: float = 0.0
    """Scenario seconds for which a request is held while there is no replica at all; 0 answers 503 at once."""


@dataclass(frozen=True, slots=True)
class WorldConfig:
    seed: int
    time_scale: float
    pools: tuple[PoolConfig, ...]
    preset: str = "quick"
    planted_bugs: frozenset[PlantedBug] = frozenset()
    gateway_namespace: str = "inference"
    gateway_service: str = "llm"
    processes: tuple[ProcessImage, ...] = ()
    gateway: GatewayConfig = GatewayConfig()
    aside: frozenset[str] = frozenset()
    """What of the surroundings is not to be there because the real thing is: "karpenter"."""
    feature_gates: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    """Of a real control plane, by component, or for ``all`` of them."""
    called: Mapping[str, str] = field(default_factory=dict)
    """What an experiment's objects call HOST:PORT in a cluster, and where that is here."""

    def has(self, bug: PlantedBug) -> bool:
        return bug in self.planted_bugs

    def to_json(self) -> str:
        sets = {"planted_bugs": sorted(self.planted_bugs), "aside": sorted(self.aside)}
        return json.dumps(asdict(self) | sets, indent=1)

    @classmethod
    def from_json(cls, text: str) -> WorldConfig:
        raw: dict[str, Any] = json.loads(text)
        known = {f.name for f in fields(cls)}
        if unknown := set(raw) - known:
            raise ValueError(f"unknown world settings: {sorted(unknown)}; known: {sorted(known)}")
        raw["pools"] = tuple(PoolConfig(**p) for p in raw["pools"])
        raw["processes"] = tuple(
            ProcessImage(p["image"], tuple(p["command"]), tuple((k, v) for k, v in p["env"]))
            for p in raw.get("processes", ())
        )
        raw["gateway"] = GatewayConfig(**raw.get("gateway", {}))
        raw["aside"] = frozenset(raw.get("aside", ()))
        raw["planted_bugs"] = frozenset(PlantedBug(b) for b in raw.get("planted_bugs", ()))
        return cls(**raw)

    @classmethod
    def read(cls, path: Path) -> WorldConfig:
        return cls.from_json(path.read_text())
