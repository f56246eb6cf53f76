"""The target ``controlplane`` with real nodes: kubelet, containerd and runc in namespaces of their own.

GPUs are names that a device plugin of ours gives out; model servers are our fakes, as containers.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fakes.images.layer import NoSuchProgram
from fakes.images.python_image import NAME, pause_image, python_image
from fakes.nodes.node_status import NOT_READY_TAINT
from harness.errors import TargetError
from harness.faults.sight import gpus, is_ready
from harness.kube.port import NODE as NODE_KIND
from harness.kube.port import Json, Kube
from harness.processes.children import spawn
from harness.stack.cache import cache_dir
from harness.stack.catalogue import CONTROL_PLANE, KUBE_APISERVER, NODE
from harness.stack.component import Component
from harness.stack.control_plane_flags import Settings
from harness.stack.kubernetes import ControlPlane
from harness.stack.patience import until_nothing_is_wrong
from harness.targets.controlplane.target import ControlPlaneTarget
from harness.targets.node.cgroups import PREFIX, ROOT
from harness.targets.node.credentials import issue_credentials, names_of
from harness.targets.node.surround import MachineRoom
from harness.targets.real_pods import images_of_ours

MACHINES = "machines"
UP_WITHIN_S = 90.0
CLEAN_GRACE_S = 90.0
TOOLS = ("unshare", "nsenter", "ip", "mount")


class NodeTarget(ControlPlaneTarget):
    """Nothing of it outlives our process: the kernel ends the machines with the process that holds them, and a keeper
    removes the cgroups and files that the kernel keeps."""

    name = "node"
    real: tuple[str, ...] = (
        "kube-apiserver, etcd, kube-scheduler and kube-controller-manager as plain processes",
        "kubelet, containerd and runc in namespaces, the pods' network, probes, hooks and signals",
        "the kubelet's device manager and the device plugin API", "aggregation of the metrics APIs",
        "HTTP, TLS and SSE", "the official Kubernetes client", "Locust", "Chaos Toolkit",
    )  # fmt: skip
    emulated: tuple[str, ...] = (
        "GPUs (a device plugin of ours, without any)", "the cloud and its spot interruptions",
        "Karpenter (its rules, on its own CRDs)", "vLLM (engine model, its HTTP and SSE, as containers)", "the gateway",
        "the metrics pipeline behind the metrics APIs",
    )  # fmt: skip
    programs: Sequence[Component] = (*CONTROL_PLANE, *NODE)
    _surround_module = "harness.targets.node.surround"

    def _settings(self) -> Settings:
        """The API server knows nodes by their certificates, and lets each write what is its own only."""
        node = ("--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction")  # beside RBAC
        return replace(super()._settings(), more={KUBE_APISERVER.name: node})

    async def _until_machines_are_up(self, kube: Kube) -> None:
        """Ready, with their GPUs. Before the experiment's objects come: pods that found no node would have Karpenter's
        rules order more."""

        async def look() -> str:
            nodes = {node["metadata"]["name"]: node for node in (await kube.list(NODE_KIND)).items}
            missing = [node.name for node in self.planned_fleet() if not _up(nodes.get(node.name), node.gpus)]
            return ", ".join(missing)

        await until_nothing_is_wrong(look, "these machines did not come up with their GPUs", UP_WITHIN_S)

    async def _further_files(self, control_plane: ControlPlane) -> dict[str, Path]:
        folder = (self._folder / MACHINES).resolve()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        cgroup = PREFIX + secrets.token_hex(4)
        await self._keep(cgroup, folder)
        issue_credentials(control_plane.certificates, folder / "credentials", names_of(self._config.pools))
        room = MachineRoom(
            state=str(folder),
            logs=str(self._logs.resolve()),
            cgroup=cgroup,
            credentials=str(folder / "credentials"),
            programs={component.name: self._binaries.path(component) for component in NODE},
            images=[str(path) for path in await asyncio.to_thread(self._make_images)],
        )
        room.write(folder / "room.json")
        return {"machines": folder / "room.json"}

    async def _keep(self, cgroup: str, folder: Path) -> None:
        """Before anything is made that would have to be removed."""
        argv = [sys.executable, "-m", "harness.targets.node.keeper", "--cgroup", cgroup, "--folder", str(folder)]
        keeper = await spawn("the machines' keeper", argv, env={}, log=self._logs / "keeper.log")
        self._running.push_async_callback(keeper.stop, CLEAN_GRACE_S)

    def _make_images(self) -> list[Path]:
        """Every model server of the experiment by its own name: nodes pull from nowhere."""
        names = [NAME, *images_of_ours(self._wanted.images, self._config)]
        cache = cache_dir() / "images"
        cache.mkdir(parents=True, exist_ok=True)
        pause, ours = cache / "pause.oci", self._folder / MACHINES / "fakes.oci"
        try:
            pause_image(pause, cache)
            python_image(ours, cache, names)
        except NoSuchProgram as error:
            raise TargetError(f"the image of the fakes cannot be made: {error}") from error
        return [pause, ours]


def refuse_unable_machine() -> None:
    """TargetError where this machine cannot hold others."""
    if sys.platform != "linux":
        raise TargetError("--target node needs Linux: its nodes are namespaces", hint="--target kind, or controlplane")
    if os.geteuid() != 0:
        raise TargetError(
            "--target node needs root: it makes namespaces, mounts and cgroups", hint="sudo, or --target kind"
        )
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        raise TargetError(f"--target node needs {', '.join(missing)}", hint="packages util-linux and iproute2")
    if not os.access(ROOT, os.W_OK):
        raise TargetError(f"--target node needs to make cgroups, and {ROOT} cannot be written")


def _up(node: Json | None, wanted: int) -> bool:
    """``wanted``: its GPUs."""
    if node is None:
        return False
    tainted = any(t["key"] == NOT_READY_TAINT["key"] for t in node["spec"].get("taints") or ())
    return is_ready(node) and not tainted and (gpus(node) or 0) == wanted
