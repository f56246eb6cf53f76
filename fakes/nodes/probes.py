"""Probes: what a pod's spec asks for, one try, and the kubelet's rule of thresholds, on timers of the event loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass

from fakes.nodes.runtime import NO_ANSWER, Container
from fakes.nodes.shell import NotUnderstood, Shell
from fakes.timing import Timing
from harness.kube.port import Json


@dataclass(frozen=True, slots=True)
class Probe:
    """Seconds of the clock. The period follows the time scale; so does the timeout, but for HTTP answers, which are
    real."""

    kind: str  # "Startup" | "Readiness" | "Liveness"
    path: str | None
    """None where the spec asks for what is not emulated (grpc): such a probe always fails, and says so."""
    url: str
    tcp: bool
    """Content with a connection, whatever would be answered on it."""
    command: tuple[str, ...]
    initial_delay_s: float
    period_s: float
    timeout_s: float
    success_threshold: int
    failure_threshold: int
    grace_s: float | None
    """Scenario seconds that a liveness or startup probe gives the container it kills, where it says so itself."""


def read_probe(kind: str, container: Json, pod_ip: str, timing: Timing) -> Probe | None:
    raw: Json | None = container.get(f"{kind.lower()}Probe")
    if raw is None:
        return None
    where = raw.get("httpGet") or raw.get("tcpSocket") or {}
    path = where.get("path") or "/" if where else None
    command = tuple((raw.get("exec") or {}).get("command") or ())
    default_s = timing.durations.readiness_period_s if kind == "Readiness" else 10
    timeout_s = float(raw.get("timeoutSeconds") or 1)
    return Probe(
        kind=kind,
        path=path,
        url=f"http://{pod_ip}:{_port(where.get('port', 0), container)}{path or ''}",
        tcp="httpGet" not in raw,
        command=command,
        initial_delay_s=timing.clock_s(raw.get("initialDelaySeconds") or 0),
        period_s=timing.clock_s(raw.get("periodSeconds") or default_s),
        timeout_s=timing.clock_s(timeout_s) if command else timeout_s,
        success_threshold=int(raw.get("successThreshold") or 1),
        failure_threshold=int(raw.get("failureThreshold") or 3),
        grace_s=raw.get("terminationGracePeriodSeconds"),
    )


@dataclass(frozen=True, slots=True)
class Tried:
    """``ok`` is None when nothing was learnt: then it counts neither way. ``said`` is the message of the event."""

    ok: bool | None
    said: str = ""


_OK = Tried(True)


class Prober:
    """One probe of one container, from ``start`` to ``stop``. ``reached(ok)`` is called each time a threshold is
    reached, ``unhealthy(message)`` for each try that failed."""

    def __init__(
        self,
        probe: Probe,
        container: Container,
        shell: Shell,
        reached: Callable[[bool], None],
        unhealthy: Callable[[str], None],
    ) -> None:
        self._probe = probe
        self._container = container
        self._shell = shell
        self._reached = reached
        self._unhealthy = unhealthy
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        self._task: asyncio.Future[Tried] | None = None
        self._last: bool | None = None
        self._run = 0
        self._failed: BaseException | None = None

    def start(self) -> None:
        self._timer = self._loop.call_later(self._probe.initial_delay_s, self._fire)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _fire(self) -> None:
        self._timer = self._loop.call_later(self._probe.period_s, self._fire)
        if self._task is not None:
            return  # the try before this one still waits for its answer
        probe = self._probe
        if not probe.command and probe.path is not None:
            answer = self._container.probe(probe.path)
            if answer is None or (isinstance(answer, int) and answer != NO_ANSWER):
                self._take(_judge(probe, answer))
                return
        else:
            answer = None
        self._task = asyncio.ensure_future(self._try(answer))
        self._task.add_done_callback(self._tried)

    async def _try(self, answer: object) -> Tried:
        probe = self._probe
        try:
            async with asyncio.timeout(probe.timeout_s):
                if probe.command:
                    return await _execute(probe, self._shell)
                if inspect.isawaitable(answer):
                    answer = await answer
                if answer == NO_ANSWER:
                    await asyncio.Event().wait()
        except TimeoutError:
            return Tried(False, _timed_out(probe))
        return _judge(probe, answer if isinstance(answer, int) else None)

    def _tried(self, task: asyncio.Future[Tried]) -> None:
        if task.cancelled():
            return
        self._task = None
        self._take(task.result())

    def _take(self, tried: Tried) -> None:
        if tried.said:
            self._unhealthy(tried.said)
        if tried.ok is None:
            return
        self._run = self._run + 1 if tried.ok is self._last else 1
        self._last = tried.ok
        if self._run >= (self._probe.success_threshold if tried.ok else self._probe.failure_threshold):
            self._reached(tried.ok)


def _judge(probe: Probe, status: int | None) -> Tried:
    if probe.path is None:
        return Tried(False, f"{probe.kind} probe failed: only httpGet, tcpSocket and exec probes are emulated")
    if status is None:
        address = probe.url.removeprefix("http://").partition("/")[0]
        asked = "" if probe.tcp else f'Get "{probe.url}": '
        return Tried(False, f"{probe.kind} probe failed: {asked}dial tcp {address}: connect: connection refused")
    if probe.tcp or 200 <= status < 400:
        return _OK
    return Tried(False, f"{probe.kind} probe failed: HTTP probe failed with statuscode: {status}")


async def _execute(probe: Probe, shell: Shell) -> Tried:
    try:
        code = await shell.run(probe.command)
    except NotUnderstood as error:
        said = f"{probe.kind} probe errored and resulted in unknown state: a hollow container does not know {error}"
        return Tried(None, said)
    return _OK if code == 0 else Tried(False, f"{probe.kind} probe failed: ")


def _timed_out(probe: Probe) -> str:
    if probe.command:
        return f"{probe.kind} probe failed: command timed out"
    why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    return f'{probe.kind} probe failed: Get "{probe.url}": {why}'


def _port(port: int | str, container: Json) -> int:
    if isinstance(port, int):
        return port
    named = {p.get("name"): p["containerPort"] for p in container.get("ports") or ()}
    return int(named.get(port, 0))
