"""The real side: an API server with its etcd, and of the controllers only those that API clients wait for.

They furnish namespaces (default ServiceAccount, kube-root-ca.crt) and end their deletion; everything else that happens
is what the cases do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.stack.catalogue import KUBE_CONTROLLER_MANAGER, KUBE_SCHEDULER
from harness.stack.control_plane_flags import Settings
from harness.stack.find import Binaries
from harness.stack.kubernetes import running_control_plane

_CONTROLLERS = "serviceaccount-controller,root-ca-certificate-publisher-controller,namespace-controller"
_FLAGS = {KUBE_CONTROLLER_MANAGER.name: (f"--controllers={_CONTROLLERS}", "--concurrent-namespace-syncs=50")}


@dataclass(frozen=True, slots=True)
class RealServer:
    url: str
    token: str
    kubeconfig: Path


@asynccontextmanager
async def real_server(binaries: Binaries, folder: Path) -> AsyncIterator[RealServer]:
    settings = Settings(more=_FLAGS)
    async with running_control_plane(binaries, folder, settings=settings, without={KUBE_SCHEDULER.name}) as running:
        yield RealServer(running.url, running.token, running.kubeconfig)
