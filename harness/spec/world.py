"""The emulated world an experiment asks for: pools, preset, planted bugs.

A mirror of ``fakes.config``: the harness does not import the fakes, so a test compares both field by field.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict, StringConstraints, model_validator

from harness.spec.model import Count, CountFromZero, Flag, ObjectName, SecondsFromZero, SpecModel, Text, mistake

PresetName = Literal["quick", "slow"]
GatewayPolicy = Literal["least_loaded", "prefix_aware"]
CapacityType = Literal["spot", "on-demand"]
PlantedBugName = Literal[
    "server_aborts_on_sigterm",
    "server_hangs_on_sigterm",
    "server_crashes_under_load",
    "server_engine_dies",
    "server_engine_stuck",
    "server_never_answers",
    "server_sends_away",
    "server_fails_some_requests",
    "server_answers_late",
    "server_decodes_slowly",
    "model_loads_slowly",
    "server_healthy_while_loading",
    "server_stutters",
    "server_chokes_on_long_prompts",
    "server_serves_the_urgent_late",
    "gateway_routes_to_terminating",
    "gateway_routes_before_ready",
    "gateway_cuts_all_on_change",
    "gateway_cuts_long_answers",
    "gateway_retries_mid_stream",
    "gateway_sends_twice",
    "gateway_drops_tokens",
    "gateway_repeats_tokens",
    "gateway_ignores_new_endpoints",
    "ready_before_serving",
    "grace_cut_short",
    "pre_stop_skipped",
    "node_never_ready",
    "image_pull_hangs",
    "device_plugin_never_comes",
    "device_plugin_dies",
    "allocatable_lies",
    "gpus_given_twice",
    "probe_never_passes",
    "sigterm_beside_pre_stop",
    "pod_never_goes",
    "dead_node_keeps_its_lease",
    "hpa_blind",
    "hpa_hesitates",
    "hpa_never_scales_in",
    "hpa_thrashes",
    "hpa_reads_empty_as_zero",
    "metrics_stale",
    "metrics_hole",
    "metrics_hole_as_zero",
    "second_writer_of_replicas",
    "replicas_never_created",
    "replicas_never_replaced",
    "scale_in_kills",
    "endpoint_never_added",
    "endpoint_removed_late",
    "budget_counts_unready",
    "eviction_ignores_budget",
    "gang_bound_one_by_one",
    "gang_bound_slowly",
    "gang_member_never_replaced",
    "orphaned_pods_kept",
    "drain_ignores_pdb",
    "drain_taints_another_node",
    "instance_ended_undrained",
    "node_left_over",
    "claim_left_over",
    "new_node_removed_at_once",
    "provisioner_idle",
    "provisioner_orders_too_many",
    "provisioner_ignores_price",
    "instance_never_boots",
    "interruption_without_effect",
    "notice_cut_short",
    "drain_cordons_another_node",
    "do_not_disrupt_ignored",
    "api_loses_watch_history",
    "deletion_refused",
    "clock_of_a_node_is_off",
    "api_server_replaced",
]


GateScope = Literal["all", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
GateName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9]+$")]


class PoolSpec(SpecModel):
    """A pool of equal instances. ``nodes`` exist at the start; ``stock`` counts all there can be, those included. With
    ``gpus`` 0 it is of nodes for pods that ask for none."""

    name: ObjectName
    capacity_type: CapacityType
    gpus: Annotated[int, Strict(), Field(ge=0, le=64)] = 4
    nodes: Annotated[int, Strict(), Field(ge=0, le=250)] = 0
    stock: CountFromZero = 1
    cpu: Count = 32
    memory_gib: Count = 256
    instance_type: Text = "gpu.4x"
    gpu_product: Text = "NVIDIA-H100-80GB-HBM3"
    zone: Text = "zone-a"
    price_per_hour: float = Field(0.0, ge=0, strict=True)
    provision: Flag = True
    nodepool: ObjectName | Literal[""] = ""
    dra: Flag = False

    @model_validator(mode="after")
    def _nodes_within_stock(self) -> PoolSpec:
        if self.nodes > self.stock:
            raise mistake(
                f"pool {self.name!r} starts with {self.nodes} nodes, but its stock is {self.stock}",
                key=("nodes",),
                hint="stock counts all instances of the pool, those at the start included",
            )
        return self


class ProcessSpec(SpecModel):
    """Containers of images whose name contains ``image`` are real processes of this machine. In ``command``, ``{port}``
    is the port to listen on, ``{host}`` the address, ``{pod}`` the pod's name, and ``{args}`` all words of the
    container's own command line. Where nodes are real (``--target node``) it runs in a container that sees of this
    machine what ``folders`` names, and the system's own."""

    image: Text
    command: tuple[Text, ...] = Field(min_length=1)
    env: dict[str, str] = Field(default_factory=dict)
    folders: tuple[Annotated[Text, Field(pattern=r"^/")], ...] = ()

    @model_validator(mode="after")
    def _is_told_its_port(self) -> ProcessSpec:
        if not any("{port}" in word for word in self.command):
            raise mistake(
                "no word of the command has {port}, so the process cannot know where to listen",
                key=("command",),
                hint="for vLLM: [.../bin/vllm, serve, MODEL, --port, '{port}', '{args}']",
            )
        return self


class GatewaySpec(SpecModel):
    """The router in front of the replicas. ``endpoints_lag_s`` and ``hold_s`` are in scenario seconds, the others in
    those of the clock; limits of 0 are none."""

    policy: GatewayPolicy = "least_loaded"
    endpoints_lag_s: float = Field(default=0.1, ge=0, le=60, strict=True)
    in_flight_max: CountFromZero = 0
    queue_max: CountFromZero = 100
    queue_s: float = Field(default=10.0, gt=0, strict=True)
    answer_s: float = Field(default=0.0, ge=0, strict=True)
    hold_s: SecondsFromZero = 0.0
    """For how long a request is held while there is no replica at all."""


class WorldSpec(SpecModel):
    """Only for targets whose cloud is emulated."""

    preset: PresetName = "quick"
    pools: tuple[PoolSpec, ...] = Field(min_length=1)
    planted_bugs: tuple[PlantedBugName, ...] = ()
    processes: tuple[ProcessSpec, ...] = ()
    gateway: GatewaySpec = Field(default_factory=GatewaySpec)
    feature_gates: dict[GateScope, dict[GateName, Flag]] = Field(default_factory=dict)
    """Of a real control plane: those of all its components, then what one of them has otherwise."""

    @model_validator(mode="after")
    def _names_differ(self) -> WorldSpec:
        names = [pool.name for pool in self.pools]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise mistake(
                    f"two pools are named {name!r}", key=("pools", index, "name"), hint="give each its own name"
                )
        if not any(pool.nodes for pool in self.pools):
            raise mistake("no pool has a node at the start", key=("pools",), hint="set nodes: 1 in one of them")
        if not any(pool.gpus for pool in self.pools):
            raise mistake(
                "no pool has a GPU, so no replica could ever run",
                key=("pools",),
                hint="set gpus: 4 in one of them; 0 is for nodes of pods that ask for none",
            )
        for index, bug in enumerate(self.planted_bugs):
            if bug in self.planted_bugs[:index]:
                raise mistake(f"{bug!r} is listed twice", key=("planted_bugs", index))
        return self
