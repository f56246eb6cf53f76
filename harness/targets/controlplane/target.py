"""A real control plane, 1.37, as plain processes on 127.0.0.1; nodes, cloud, GPUs and model servers are ours."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from fakes.config import PlantedBug, WorldConfig
from harness.faults.pick import FleetNode
from harness.kube.http import HttpKube
from harness.kube.port import Kube
from harness.processes.children import Child, spawn
from harness.stack import only_loopback
from harness.stack.addons import SURROUNDINGS, Standing, running_addons
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.component import Component
from harness.stack.control import serving_control
from harness.stack.control_plane_flags import Settings
from harness.stack.description import Described
from harness.stack.find import Binaries
from harness.stack.kubernetes import ControlPlane, running_control_plane
from harness.stack.patience import unless
from harness.stack.ports import HOST
from harness.stack.services import not_up
from harness.targets.applied import as_applied
from harness.targets.base import Connection
from harness.targets.controlplane.instance_types import instance_types
from harness.targets.controlplane.objects import (
    METRICS_HOST,
    install_karpenters_kinds,
    register_metrics,
    take_the_autoscalers_pen,
)
from harness.targets.manifests import PROCESSES_TIMEOUT_S, apply, wait_until_available
from harness.targets.wanted import Places, Wanted, planned_fleet

START_TIMEOUT_S = 60
AVAILABLE_TIMEOUT_S = 90
STOP_GRACE_S = 3
FOLDER = "control-plane"
READY_FILE = "surroundings-ready.json"
WORLD_FILE = "world.json"
KARPENTER = "karpenter"
"""The part of ours that stands aside for the real one."""
KARPENTERS_TYPES = "karpenter/instance_types"
PICKERS_PORT = "epp/grpc"
SCRAPED = {"gateway_url": "gateway", "gpu_metrics_url": "dcgm-exporter"}
"""What a real Prometheus scrapes of the surroundings, and as which job."""

NO_QUEUE = (
    "the interruption queue (Karpenter's kwok provider has none: a notice deletes the NodeClaim, and its power goes "
    "off at the deadline)",
    "the cloud's stock (that provider always has every offering)",
)
"""What the report says of a Karpenter that is real, and of the cloud behind it."""


class ControlPlaneTarget:
    """Everything it starts ends with our process: our own child by its parent pipe, the real programs by a guard that
    holds one for them."""

    name = "controlplane"
    real: tuple[str, ...] = (
        "kube-apiserver, etcd, kube-scheduler and kube-controller-manager as plain processes (HPA, Deployment, PDB and "
        "eviction, node lifecycle, endpoints, garbage collection, gangs)",
        "aggregation of the metrics APIs", "HTTP, TLS and SSE over loopback", "the official Kubernetes client",
        "Locust", "Chaos Toolkit",
    )  # fmt: skip
    emulated: tuple[str, ...] = (
        "nodes and kubelets", "GPUs and device plugin", "the cloud and its spot interruptions",
        "Karpenter (its rules, on its own CRDs)", "vLLM (engine model, its HTTP and SSE)", "the gateway",
        "the metrics pipeline behind the metrics APIs",
    )  # fmt: skip

    programs: Sequence[Component] = CONTROL_PLANE
    """The real ones that its report names."""
    _surround_module = "harness.targets.controlplane.surround"

    def __init__(
        self,
        wanted: Wanted,
        binaries: Binaries,
        places: Places,
        addons: Sequence[Described] = (),
        addon_programs: Binaries | None = None,
    ) -> None:
        self._wanted = wanted
        self._addons = addons
        self._addon_programs = addon_programs or Binaries({})
        self.standing = Standing()
        self.real = (*self.real, *(f"{described.name} ({_told(described)})" for described in addons))
        aside = wanted.config.aside
        beside = NO_QUEUE if KARPENTER in aside else ()
        self.emulated = (*(part for part in self.emulated if not _stands_aside(part, aside)), *beside)
        self._config = wanted.config
        self._binaries = binaries
        self._folder = places.folder
        self._logs = places.logs
        self._ledger = places.ledger
        self._running = AsyncExitStack()
        self._control_plane: ControlPlane | None = None
        self._surroundings: Child | None = None

    @property
    def versions(self) -> Mapping[str, str]:
        programs = {component.name: self._binaries.found[component.name].version for component in self.programs}
        return programs | {described.name: described.version for described in self._addons}

    @property
    def log(self) -> Path:
        dead = self._dead()
        return dead.log if dead is not None else self._logs / "surroundings.log"

    def planned_fleet(self) -> Sequence[FleetNode]:
        return planned_fleet(self._config)

    async def up(self) -> Connection:
        self._control_plane = control_plane = await self._running.enter_async_context(
            running_control_plane(self._binaries, self._folder / FOLDER, logs=self._logs, settings=self._settings())
        )
        async with HttpKube(control_plane.kubeconfig) as kube:
            await unless(self._check_alive, self._bring_up_addons(control_plane))
            await unless(self._check_alive, install_karpenters_kinds(kube))
            urls = await unless(self._check_alive, self._surround(control_plane))
            port = urlsplit(urls["metrics_url"]).port
            assert port is not None
            aside = self._config.aside
            await unless(self._check_alive, register_metrics(kube, port, control_plane.authority, aside=aside))
            if PlantedBug.HPA_BLIND in self._config.planted_bugs:
                await take_the_autoscalers_pen(kube)
            await unless(self._check_alive, self._until_machines_are_up(kube))
            await apply(kube, [(r, as_applied(self.name, o, self._config)) for r, o in self._wanted.objects])
            if self._wanted.selector:
                namespace, selector = self._config.gateway_namespace, self._wanted.selector
                patience_s = PROCESSES_TIMEOUT_S if self._config.processes else AVAILABLE_TIMEOUT_S
                await unless(self._check_alive, wait_until_available(kube, namespace, selector, patience_s))
        return Connection(
            target=self.name,
            kubeconfig=control_plane.kubeconfig,
            service_url=urls["gateway_url"],
            control_url=urls["control_url"],
            namespace=self._config.gateway_namespace,
            time_scale=self._config.time_scale,
            undo_in_cluster=True,
            world=str((control_plane.folder / WORLD_FILE).resolve()),
            stack_url=await self._running.enter_async_context(serving_control(control_plane.services)),
            stack=tuple(self.standing.names),
        )

    def _settings(self) -> Settings:
        return settings_for(self._config)

    async def _until_machines_are_up(self, kube: Kube) -> None:
        """Hollow ones are so at once."""

    async def _further_files(self, control_plane: ControlPlane) -> dict[str, Path]:
        """What the process of the surroundings needs beside those of every target, by the name of its argument."""
        return {}

    async def down(self) -> None:
        await self._running.aclose()

    def program_pids(self) -> tuple[int, ...]:
        """The guards of the real programs."""
        return tuple(self._control_plane.services.pids.values()) if self._control_plane is not None else ()

    def died(self) -> str | None:
        dead = self._dead()
        return dead.how_it_ended() if dead is not None else None

    def _dead(self) -> Child | None:
        if self._control_plane is not None and (dead := self._control_plane.dead()) is not None:
            return dead
        if self._surroundings is not None and self._surroundings.returncode is not None:
            return self._surroundings
        return None

    async def _bring_up_addons(self, control_plane: ControlPlane) -> None:
        if not self._addons:
            return
        kube = await self._running.enter_async_context(HttpKube(control_plane.kubeconfig, field_manager="stack"))
        self.standing = await self._running.enter_async_context(
            running_addons(
                self._addons, self._addon_programs, control_plane, kube,
                time_scale=self._config.time_scale,
                contents={KARPENTERS_TYPES: instance_types(self._config.pools)},
            )
        )  # fmt: skip
        # Where they are is known only now.
        port, gateway = self.standing.ports.get(PICKERS_PORT), self._config.gateway
        if port is not None:
            gateway = replace(gateway, picker=f"{HOST}:{port}")
        self._config = replace(self._config, gateway=gateway, called=self.standing.called)

    async def _surround(self, control_plane: ControlPlane) -> dict[str, str]:
        """Starts everything around the control plane; its URLs once they answer."""
        folder = control_plane.folder
        config, ready = folder / WORLD_FILE, folder / READY_FILE
        config.write_text(self._config.to_json())
        door = control_plane.certificates.issue("metrics", hosts=(METRICS_HOST, "localhost"))
        files = {
            "config": config,
            "kubeconfig": control_plane.kubeconfig,
            "ready": ready,
            "certificate": door.certificate,
            "key": door.key,
            "front-proxy-authority": control_plane.layout.front_proxy_authority,
        } | ({"ledger": self._ledger} if self._ledger else {})
        files |= await self._further_files(control_plane)
        argv = [sys.executable, "-m", self._surround_module]
        argv += [word for name, path in files.items() for word in (f"--{name}", str(path))]
        child = await spawn("nodes, cloud and gateway", argv, env={}, log=self._logs / "surroundings.log")
        self._surroundings = child
        self._running.push_async_callback(child.stop, STOP_GRACE_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_TIMEOUT_S):
                while not ready.exists() and child.returncode is None:
                    await asyncio.sleep(0.02)
        if not ready.exists():
            raise not_up(child, f"{child.name} did not come up in {START_TIMEOUT_S} s")
        urls: dict[str, str] = json.loads(ready.read_text())
        scraped = [{"targets": [urlsplit(urls[name]).netloc], "labels": {"job": job}} for name, job in SCRAPED.items()]
        part = folder / f".{SURROUNDINGS}"
        part.write_text(json.dumps(scraped))
        part.rename(folder / SURROUNDINGS)  # whole at once, for who watches the folder
        return urls

    def _check_alive(self) -> None:
        """TargetError as soon as one of the processes has ended."""
        if (dead := self._dead()) is not None:
            raise not_up(dead, f"the control plane did not come up: {dead.how_it_ended()}")


def _told(described: Described) -> str:
    """What a report says of a real component: who reads it may be on another machine than the one that ran it."""
    everywhere = [program.name for program in described.addon.programs if program.everywhere]
    everywhere = [] if only_loopback.possible() else everywhere
    listens = f"; {', '.join(everywhere)} listened on all interfaces" if everywhere else ""
    return f"{described.addon.about}{listens}"


def _stands_aside(emulated: str, aside: Collection[str]) -> bool:
    return (emulated.startswith("Karpenter") and KARPENTER in aside) or (
        emulated.startswith("the metrics pipeline") and "custom.metrics.k8s.io" in aside
    )


def settings_for(config: WorldConfig) -> Settings:
    """Which flags a world's time scale and planted bugs make. A scheduler that binds gangs one by one is a real one
    that was not told of gangs."""
    return Settings(
        time_scale=config.time_scale,
        scheduler_gangs=PlantedBug.GANG_BOUND_ONE_BY_ONE not in config.planted_bugs,
        gates=config.feature_gates,
    )
