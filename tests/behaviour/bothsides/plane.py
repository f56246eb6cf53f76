"""A real control plane for one comparison, with flags that give it the same durations as the embedded side."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from bothsides.hollow import DURATIONS

from harness.stack.catalogue import KUBE_CONTROLLER_MANAGER
from harness.stack.control_plane_flags import Settings
from harness.stack.find import Binaries
from harness.stack.kubernetes import running_control_plane
from harness.stack.ports import HOST


@dataclass(frozen=True, slots=True)
class Plane:
    kubeconfig: Path
    tls: ssl.SSLContext
    """Of the metrics adapter that scenarios feed."""


@contextlib.asynccontextmanager
async def real_plane(binaries: Binaries, folder: Path) -> AsyncIterator[Plane]:
    settings = Settings(more={KUBE_CONTROLLER_MANAGER.name: _same_durations()})
    async with running_control_plane(binaries, folder / "control-plane", settings=settings) as running:
        pair = running.certificates.issue("adapter", hosts=("localhost", HOST))
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(pair.certificate, pair.key)
        yield Plane(running.kubeconfig, tls)


def _same_durations() -> list[str]:
    d = DURATIONS
    return [
        f"--node-monitor-period={round(d.node_monitor_s * 1000)}ms",
        f"--node-monitor-grace-period={round(d.node_monitor_grace_s * 1000)}ms",
        f"--horizontal-pod-autoscaler-sync-period={round(d.hpa_sync_s * 1000)}ms",
    ]
