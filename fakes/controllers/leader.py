"""Leader election as client-go does it: a Lease that the leader renews. Who cannot reach the API server loses it."""

from __future__ import annotations

import asyncio
import contextlib

from fakes.clock import WallClock
from fakes.timing import Timing
from harness.kube.port import LEASE, AlreadyExists, ApiError, Json, Kube, NotFound

NAMESPACE = "kube-system"
RENEW_S = 2
LEASE_DURATION_S = 15


async def keep_leading(kube: Kube, wall: WallClock, timing: Timing, name: str) -> None:
    """Renews the Lease ``name`` for ever. There is one candidate, so nobody else takes it meanwhile."""
    holder = f"{name}-0"
    lease: Json = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": LEASE_DURATION_S},
    }
    while True:
        with contextlib.suppress(ApiError, ConnectionError):  # the next renewal tries again
            await _renew(kube, lease, wall.stamp_micro())
        await asyncio.sleep(timing.clock_s(RENEW_S))


async def _renew(kube: Kube, lease: Json, now: str) -> None:
    try:
        await kube.patch(LEASE, lease["metadata"]["name"], {"spec": {"renewTime": now}}, NAMESPACE)
    except NotFound:
        try:
            await kube.create(LEASE, {**lease, "spec": {**lease["spec"], "renewTime": now}}, NAMESPACE)
        except AlreadyExists:
            return
