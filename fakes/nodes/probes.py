"""Probes: what a pod's spec asks for, one try, and the kubelet's rule of thresholds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from fakes.nodes.runtime import Container
from fakes.timing import Timing
from harness.kube.port import Json


@dataclass(frozen=True, slots=True)
class Probe:
    """Seconds of the clock. The period follows the time scale; the timeout does not, for it bounds one HTTP answer."""

    kind: str  # "Startup" | "Readiness" | "Liveness"
    path: str | None
    """None where the spec asks for what is not emulated (exec, grpc): such a probe always fails, and says so."""
    url: str
    tcp: bool
    """Content with a connection, whatever would be answered on it."""
    initial_delay_s: float
    period_s: float
    timeout_s: float
    success_threshold: int
    failure_threshold: int


def read_probe(kind: str, container: Json, pod_ip: str, timing: Timing) -> Probe | None:
    raw: Json | None = container.get(f"{kind.lower()}Probe")
    if raw is None:
        return None
    where = raw.get("httpGet") or raw.get("tcpSocket") or {}
    path = where.get("path") or "/" if where else None
    default_s = timing.durations.readiness_period_s if kind == "Readiness" else 10
    return Probe(
        kind=kind,
        path=path,
        url=f"http://{pod_ip}:{_port(where.get('port', 0), container)}{path or ''}",
        tcp="httpGet" not in raw,
        initial_delay_s=timing.clock_s(raw.get("initialDelaySeconds") or 0),
        period_s=timing.clock_s(raw.get("periodSeconds") or default_s),
        timeout_s=float(raw.get("timeoutSeconds") or 1),
        success_threshold=int(raw.get("successThreshold") or 1),
        failure_threshold=int(raw.get("failureThreshold") or 3),
    )


async def try_once(probe: Probe, container: Container) -> str | None:
    """None when it succeeded, else the message of the Unhealthy event."""
    if probe.path is None:
        return f"{probe.kind} probe failed: only httpGet and tcpSocket probes are emulated"
    try:
        async with asyncio.timeout(probe.timeout_s):
            status = await container.probe(probe.path)
    except TimeoutError:
        return (
            f'{probe.kind} probe failed: Get "{probe.url}": context deadline exceeded '
            "(Client.Timeout exceeded while awaiting headers)"
        )
    if status is None:
        address = probe.url.removeprefix("http://").partition("/")[0]
        asked = "" if probe.tcp else f'Get "{probe.url}": '
        return f"{probe.kind} probe failed: {asked}dial tcp {address}: connect: connection refused"
    if probe.tcp or 200 <= status < 400:
        return None
    return f"{probe.kind} probe failed: HTTP probe failed with statuscode: {status}"


async def results(probe: Probe, container: Container, failed: Callable[[str], None]) -> AsyncIterator[bool]:
    """Yields each time a threshold is reached, for ever; ``failed`` gets the message of each failed try."""
    await asyncio.sleep(probe.initial_delay_s)
    last: bool | None = None
    run = 0
    while True:
        message = await try_once(probe, container)
        ok = message is None
        if message is not None:
            failed(message)
        run = run + 1 if ok is last else 1
        last = ok
        if run >= (probe.success_threshold if ok else probe.failure_threshold):
            yield ok
        await asyncio.sleep(probe.period_s)


def _port(port: int | str, container: Json) -> int:
    if isinstance(port, int):
        return port
    named = {p.get("name"): p["containerPort"] for p in container.get("ports") or ()}
    return int(named.get(port, 0))
