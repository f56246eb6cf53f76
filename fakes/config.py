"""What a world is made of: pools, timing, planted bugs. Read from one JSON file that the harness writes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Any


class PlantedBug(StrEnum):
    """Wrong behaviour on purpose. Each value changes what ``fakes/`` does, never what a check is given."""

    SERVER_ABORTS_ON_SIGTERM = "server_aborts_on_sigterm"
    DRAIN_IGNORES_PDB = "drain_ignores_pdb"
    GANG_BOUND_ONE_BY_ONE = "gang_bound_one_by_one"
    READY_BEFORE_SERVING = "ready_before_serving"
    GATEWAY_ROUTES_TO_TERMINATING = "gateway_routes_to_terminating"
    HPA_BLIND = "hpa_blind"


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

    @property
    def node_pool(self) -> str:
        return self.nodepool or self.name


@dataclass(frozen=True, slots=True)
class WorldConfig:
    seed: int
    time_scale: float
    pools: tuple[PoolConfig, ...]
    preset: str = "quick"
    planted_bugs: frozenset[PlantedBug] = frozenset()
    gateway_namespace: str = "inference"
    gateway_service: str = "llm"

    def has(self, bug: PlantedBug) -> bool:
        return bug in self.planted_bugs

    def to_json(self) -> str:
        return json.dumps(asdict(self) | {"planted_bugs": sorted(self.planted_bugs)}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> WorldConfig:
        raw: dict[str, Any] = json.loads(text)
        known = {f.name for f in fields(cls)}
        if unknown := set(raw) - known:
            raise ValueError(f"unknown world settings: {sorted(unknown)}; known: {sorted(known)}")
        raw["pools"] = tuple(PoolConfig(**p) for p in raw["pools"])
        raw["planted_bugs"] = frozenset(PlantedBug(b) for b in raw.get("planted_bugs", ()))
        return cls(**raw)

    @classmethod
    def read(cls, path: Path) -> WorldConfig:
        return cls.from_json(path.read_text())
