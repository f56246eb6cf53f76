"""A kind cluster: Kubernetes with its kubelets is real, in containers; GPUs, cloud and model servers are ours."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fakes.config import WorldConfig
from fakes.images.python_image import FAKES
from fakes.nodes.labels import node_labels
from harness.errors import TargetError
from harness.faults.pick import FleetNode
from harness.kube.http import HttpKube
from harness.kube.port import NAMESPACE, NODE, POD, SECRET, AlreadyExists, ApiError, Kube, NotFound
from harness.processes.children import Child, spawn
from harness.stack.cache import cache_dir
from harness.stack.certificates import Authority
from harness.stack.patience import Look, unless, until_nothing_is_wrong
from harness.targets.applied import as_applied
from harness.targets.base import Connection
from harness.targets.controlplane.objects import (
    METRICS_HOST,
    SYSTEM_NAMESPACE,
    install_karpenters_kinds,
    register_metrics,
)
from harness.targets.kind.cluster_file import (
    CONTROL_PORT,
    GATEWAY_PORT,
    METRICS_PORT,
    cluster_file,
    control_plane_name,
    workers_of,
)
from harness.targets.kind.commands import KindCommands
from harness.targets.kind.containers import ContainerMachines
from harness.targets.kind.images import Image, Images
from harness.targets.kind.inventory import settled
from harness.targets.kind.kept import KEEP_ENV, KeptFolder, Record, cluster_name
from harness.targets.kind.objects import (
    DAEMON_SET,
    FRONT_IMAGE,
    IMAGE,
    device_plugins,
    front_files,
    front_pod,
    front_proxy_authority,
    kubeconfig_on_the_node,
)
from harness.targets.kind.readiness import front_wrong, missing
from harness.targets.kind.taking_over import take_over
from harness.targets.manifests import apply, create_once_admitted, wait_until_available
from harness.targets.real_pods import images_of_ours
from harness.targets.wanted import Places, Wanted

IMAGE_ENV = "GPU_HARNESS_KIND_IMAGE"
"""The node image; kind's own image for its version if none is named."""
NODES_S, FRONT_S, AVAILABLE_S, START_S = 180.0, 90.0, 240.0, 30.0
STOP_GRACE_S, DELETE_S = 3.0, 300.0
LOOK_S = 0.2
SERVICE_ACCOUNT_S = 20.0
"""A new namespace gets its service account later, and pods before that are refused."""
WORLD_FILE = "world.json"
FRONT_PACKAGES = (*FAKES, "cronsim", "cryptography", "httpx", "kubernetes", "pydantic", "rich", "zstandard")
"""What the front needs beside what a model server does."""
SETTLED_S = 1.0
"""What a new cluster's controllers still bring of themselves comes within this time of each other."""


def planned_kind_fleet(config: WorldConfig) -> tuple[FleetNode, ...]:
    """The nodes as they will be at the start, by their containers' names."""
    return tuple(
        FleetNode(worker.name, node_labels(worker.pool, worker.name), worker.pool.gpus)
        for worker in workers_of(config, cluster_name())
        if not worker.parked
    )


class KindTarget:
    """``down`` leaves nothing. A keeper that outlives us for that takes the cluster down if we could not. Where
    clusters are to be kept (``KEEP_ENV``), the cluster stays for the next run, which resets it."""

    name = "kind"
    real: tuple[str, ...] = (
        "all of Kubernetes by kubeadm: API server, etcd, scheduler, controller manager, kubelets, containerd",
        "nodes as containers, and what befalls them (docker pause, kill, stop, network disconnect)",
        "aggregation of the metrics APIs", "HTTP and SSE", "the official Kubernetes client", "Locust", "Chaos Toolkit",
    )  # fmt: skip
    emulated: tuple[str, ...] = (
        "GPUs (a device plugin with devices that are not there)", "the cloud and its spot interruptions",
        "Karpenter (its rules, on its own CRDs)", "vLLM (engine model, its HTTP and SSE)", "the gateway",
        "the metrics pipeline behind the metrics APIs",
    )  # fmt: skip

    def __init__(self, wanted: Wanted, commands: KindCommands, places: Places) -> None:
        self._wanted = wanted
        self._config = wanted.config
        self._places = places
        self._folder = places.folder / "kind"
        self._commands = replace(commands, kubeconfig=(self._folder / "kubeconfig").resolve(), say=places.say)
        self._say = places.say
        self._keeper: Child | None = None
        self._control: Child | None = None
        self._kept = KeptFolder(commands.cluster)
        self._keeps = bool(os.environ.get(KEEP_ENV))
        self.versions: Mapping[str, str] = {}
        self._engine = self._loaded = ""

    @property
    def log(self) -> Path:
        return self._places.logs / "control.log"

    def planned_fleet(self) -> Sequence[FleetNode]:
        return planned_kind_fleet(self._config)

    async def up(self) -> Connection:
        commands = self._commands
        self.versions, self._engine = await commands.check()
        self._kept.hold()
        mark = (self._kept.path if self._keeps else self._folder) / "mark"
        mark.mkdir(parents=True, exist_ok=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / "cluster.yaml"
        file.write_text(cluster_file(self._config, commands.cluster, mark.resolve()))
        images = self._images()
        try:
            taken_over = self._keeps and await self._taken_over(file, images)
            if not taken_over:
                await self._create(file, images)
        finally:
            await images.drop()
        async with HttpKube(commands.kubeconfig) as kube:
            await self._reach(kube)
            await self._begin(kube, None if taken_over else file)
            control_url, service_url = await self._surround()
            objects = [(resource, as_applied(self.name, obj, self._config)) for resource, obj in self._wanted.objects]
            await apply(kube, objects)
            if self._wanted.selector:
                self._say("waiting for the workload")
                namespace, selector = self._config.gateway_namespace, self._wanted.selector
                await unless(self._check_alive, wait_until_available(kube, namespace, selector, AVAILABLE_S))
        return Connection(
            target=self.name,
            kubeconfig=commands.kubeconfig,
            service_url=service_url,
            control_url=control_url,
            namespace=self._config.gateway_namespace,
            time_scale=self._config.time_scale,
            undo_in_cluster=True,
            world=str((self._folder / WORLD_FILE).resolve()),
        )

    async def down(self) -> None:
        if self._control is not None:
            await self._control.stop(STOP_GRACE_S)
        if self._keeps and self._kept.held and self._kept.read() is not None:
            await self._leave()
        if self._keeper is not None:
            kept = self._kept.read() is not None
            self._say(f"{'keeping' if kept else 'deleting'} the cluster {self._commands.cluster}")
            if await self._keeper.stop(DELETE_S) != 0:
                # The run's history is whole, and its verdict does not depend on this.
                why = "; ".join(self._keeper.last_lines()) or f"not within {DELETE_S:.0f} s"
                name = self._commands.cluster
                self._say(f"the cluster {name} was not deleted ({why}): kind delete cluster --name {name}")
        self._kept.release()

    def died(self) -> str | None:
        if self._control is not None and self._control.returncode is not None:
            return self._control.how_it_ended()
        return None

    async def _create(self, file: Path, images: Images) -> None:
        commands = self._commands
        self._kept.forget()
        await commands.make_way()
        await self._start_keeper()
        there = asyncio.Event()
        loading = asyncio.create_task(self._load(images, there))
        try:
            await commands.create(file, os.environ.get(IMAGE_ENV, ""), there)
            commands.kubeconfig.chmod(0o600)
            self._say("loading the images of the fakes into the nodes")
            there.set()
            await loading
        finally:
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)

    async def _taken_over(self, file: Path, images: Images) -> bool:
        """Whether there is a kept cluster that is what is wanted, and was brought back to its beginning."""
        commands, record = self._commands, self._kept.read()
        if record is None:
            return False
        try:
            wanted = file.read_text()
            record.check(wanted, os.environ.get(IMAGE_ENV, ""), await images.digest(), await commands.ids())
            self._say(f"resetting the cluster {commands.cluster} that was kept")
            shutil.copy(self._kept.kubeconfig, commands.kubeconfig)
            await take_over(commands, self._kept, record, self._config, wanted)
        except (TargetError, ApiError, OSError) as error:
            self._say(f"the cluster {commands.cluster} that was kept will not do: {error}")
            return False
        return True

    async def _keep(self, kube: HttpKube, file: Path) -> None:
        """Writes down what the cluster is before anything of the experiment is in it."""
        record = Record(
            file.read_text(), os.environ.get(IMAGE_ENV, ""), self._loaded, await self._commands.ids(),
            await settled(kube, SETTLED_S, NODES_S),
        )  # fmt: skip
        self._kept.write(record, self._commands.kubeconfig)

    async def _leave(self) -> None:
        """What is kept costs little: its workers are without power until somebody wants it."""
        first = control_plane_name(self._commands.cluster)
        try:
            workers = [name for name in await self._commands.nodes() if name != first]
            await ContainerMachines(self._commands.docker, ()).park(workers)
        except TargetError as error:
            self._say(f"the workers of the cluster that is kept could not be parked: {error}")

    def _images(self) -> Images:
        """Of what runs on workers, and of the front."""
        workers, front = self._folder / "images.tar", self._folder / "front-images.tar"
        # The fakes, also under the names that manifests have for a model server: no registry is asked for those.
        ours = Image((IMAGE, *images_of_ours(self._wanted.images, self._config)))
        wanted = {workers: ours, front: Image((FRONT_IMAGE,), FRONT_PACKAGES)}
        return Images(self._commands.docker, self._engine, cache_dir() / "kind", wanted)

    async def _load(self, images: Images, there: asyncio.Event) -> None:
        """As soon as the nodes are there: to make a cluster of them is waiting for the most part."""
        commands = self._commands
        await images.write()
        self._loaded = await images.digest()
        await there.wait()
        workers, front = images.wanted
        nodes = [worker.name for worker in workers_of(self._config, commands.cluster)]
        first = control_plane_name(commands.cluster)
        await asyncio.gather(commands.load(workers, nodes), commands.load(front, [first]))

    async def _start_keeper(self) -> None:
        commands = self._commands
        argv = [sys.executable, "-m", "harness.targets.kind.keeper", commands.docker, commands.kind, commands.cluster]
        argv += [str(commands.kubeconfig), str(self._kept.record_file)]
        self._keeper = await spawn("the keeper of the cluster", argv, env={}, log=self._places.logs / "keeper.log")

    async def _reach(self, kube: HttpKube) -> None:
        try:
            await kube.get(NAMESPACE, "kube-system")
        except ConnectionError as error:
            raise TargetError(
                f"the cluster is up, but its API server is not reached from here: {error}",
                hint="kind publishes it at 127.0.0.1 where Docker runs. If DOCKER_HOST is another machine, or Docker "
                "has a network namespace of its own, run gpu-harness there",
            ) from error

    async def _begin(self, kube: HttpKube, new: Path | None) -> None:
        """Nodes with GPUs for what runs at the start; stock without power. ``new`` is the file of a new cluster."""
        workers = workers_of(self._config, self._commands.cluster)
        parked = [worker.name for worker in workers if worker.parked]
        await install_karpenters_kinds(kube)
        with contextlib.suppress(AlreadyExists):
            await kube.create(NAMESPACE, {"metadata": {"name": SYSTEM_NAMESPACE}})
        for plugin in device_plugins(self._config):
            with contextlib.suppress(AlreadyExists):  # of the same version, or its image would be another
                await kube.create(DAEMON_SET, plugin, SYSTEM_NAMESPACE)
        if parked:
            self._say(f"parking {len(parked)} nodes: they are the pools' stock")
            await ContainerMachines(self._commands.docker, ()).park(parked)
            for name in parked:
                with contextlib.suppress(NotFound):
                    await kube.delete(NODE, name)
        wanted = {worker.name: worker.pool.gpus for worker in workers if not worker.parked}
        if new is not None and self._keeps:
            await self._until(lambda: missing(kube, dict.fromkeys(wanted, 0)), NODES_S, "the nodes were not usable")
            await self._keep(kube, new)
        front = asyncio.create_task(self._start_front(kube))  # it waits for no worker
        try:
            self._say("waiting for the nodes and their GPUs, the gateway and the metrics")
            await self._until(lambda: missing(kube, wanted), NODES_S, "the nodes were not usable")
            await front
        finally:
            front.cancel()
            await asyncio.gather(front, return_exceptions=True)

    async def _start_front(self, kube: Kube) -> None:
        commands, folder = self._commands, self._folder
        authority = Authority("metrics-authority", folder)
        pair = authority.issue("metrics", hosts=(METRICS_HOST, "localhost"))
        world = folder / WORLD_FILE
        world.write_text(self._config.to_json())
        files: dict[str, str | bytes] = {
            "world.json": world.read_bytes(),
            "kubeconfig": kubeconfig_on_the_node(commands.kubeconfig.read_text()),
            "tls.crt": pair.certificate.read_bytes(),
            "tls.key": pair.key.read_bytes(),
            "front-proxy-ca.crt": await front_proxy_authority(kube),
        }
        await kube.create(SECRET, front_files(files), SYSTEM_NAMESPACE)
        pod = front_pod(control_plane_name(commands.cluster))
        await create_once_admitted(kube, POD, pod, SYSTEM_NAMESPACE, SERVICE_ACCOUNT_S)
        await self._until(lambda: front_wrong(kube), FRONT_S, "the gateway's pod was not Ready")
        await register_metrics(kube, METRICS_PORT, authority.certificate)

    async def _surround(self) -> tuple[str, str]:
        """The control API's URL, and the gateway's."""
        ports = (GATEWAY_PORT, CONTROL_PORT)
        gateway, control = [f"http://{await self._commands.published(port)}" for port in ports]
        return await self._start_control(self._folder / WORLD_FILE, control), gateway

    async def _start_control(self, world: Path, front: str) -> str:
        commands, ready = self._commands, self._folder / "control-ready.json"
        argv = [sys.executable, "-m", "harness.targets.kind.control", "--config", str(world), "--ready", str(ready)]
        argv += ["--kubeconfig", str(commands.kubeconfig), "--docker", commands.docker, "--cluster", commands.cluster]
        self._control = await spawn("cloud and control", [*argv, "--front", front], env={}, log=self.log)

        async def wrong() -> str:
            return "" if ready.exists() else "it does not answer yet"

        await self._until(wrong, START_S, "cloud and control did not start")
        url: str = json.loads(ready.read_text())["control_url"]
        return url

    async def _until(self, look: Look, within_s: float, failure: str) -> None:
        async def wrong() -> str:
            self._check_alive()
            return await look()

        await until_nothing_is_wrong(wrong, failure, within_s, LOOK_S)

    def _check_alive(self) -> None:
        if (why := self.died()) is not None:
            assert self._control is not None
            raise TargetError("\n    ".join([f"the cluster did not come up: {why}", *self._control.last_lines()]))
