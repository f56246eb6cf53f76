"""Probes against a container that answers as scripted: single tries, and thresholds over time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from node_bench import ScriptedContainer, now

from fakes.nodes.probes import Prober, read_probe
from fakes.nodes.runtime import NO_ANSWER
from fakes.nodes.shell import Shell
from fakes.timing import Timing

pytestmark = pytest.mark.looptime

HTTP, TCP = {"httpGet": {"path": "/health", "port": 8000}}, {"tcpSocket": {"port": 8000}}
MISSING = {"exec": {"command": ["test", "-e", "/tmp/ok"]}}


class Watched:
    """A prober and what it reports."""

    def __init__(self, asked: dict[str, Any], container: ScriptedContainer, time_scale: float = 1.0) -> None:
        self.reached: list[tuple[float, bool]] = []
        self.said: list[str] = []
        timing = Timing(time_scale)
        self.shell = Shell(timing, self._refuse, print)
        probe = read_probe("Readiness", {"readinessProbe": asked}, "10.0.0.1", timing)
        assert probe is not None
        self.prober = Prober(
            probe, container, self.shell, lambda ok: self.reached.append((now(), ok)), self.said.append
        )
        self.prober.start()

    async def _refuse(self, path: str) -> int | None:
        return None


@pytest.mark.parametrize(
    "asked, status, message",
    [
        pytest.param(HTTP, 200, None, id="http-ok"),
        pytest.param(HTTP, 404, "HTTP probe failed with statuscode: 404", id="http-wrong-status"),
        pytest.param(
            HTTP,
            None,
            'Get "http://10.0.0.1:8000/health": dial tcp 10.0.0.1:8000: connect: connection refused',
            id="http-refused",
        ),
        pytest.param(
            HTTP,
            NO_ANSWER,
            'Get "http://10.0.0.1:8000/health": context deadline exceeded '
            "(Client.Timeout exceeded while awaiting headers)",
            id="http-no-answer",
        ),
        pytest.param(TCP, 404, None, id="tcp-connects"),
        pytest.param(TCP, None, "dial tcp 10.0.0.1:8000: connect: connection refused", id="tcp-refused"),
        pytest.param({"exec": {"command": ["true"]}}, None, None, id="exec-ok"),
        pytest.param(MISSING, 200, "", id="exec-fails"),
        pytest.param({"exec": {"command": ["sleep", "5"]}}, 200, "command timed out", id="exec-too-long"),
        pytest.param({"grpc": {"port": 1}}, 200, "only httpGet, tcpSocket and exec probes are emulated", id="grpc"),
    ],
)
@pytest.mark.parametrize("at_once", [True, False], ids=["at-once", "awaited"])
async def test_one_try(asked: dict[str, Any], status: int | None, message: str | None, at_once: bool) -> None:
    container = ScriptedContainer(answers_at_once=at_once)
    container.serve(status)
    watched = Watched({**asked, "periodSeconds": 10, "failureThreshold": 1}, container)
    await asyncio.sleep(1.5)
    watched.prober.stop()
    assert watched.said == ([] if message is None else [f"Readiness probe failed: {message}"])
    assert [ok for _, ok in watched.reached] == [message is None]


async def test_what_a_hollow_container_does_not_know_counts_neither_way() -> None:
    watched = Watched({"exec": {"command": ["nvidia-smi"]}, "failureThreshold": 1}, ScriptedContainer())
    await asyncio.sleep(1)
    watched.prober.stop()
    assert watched.reached == []
    assert watched.said == [
        "Readiness probe errored and resulted in unknown state: a hollow container does not know nvidia-smi"
    ]


async def test_thresholds_delay_and_period_follow_the_time_scale() -> None:
    container = ScriptedContainer()
    asked = {**HTTP, "initialDelaySeconds": 20, "periodSeconds": 10, "failureThreshold": 3, "successThreshold": 2}
    watched = Watched(asked, container, time_scale=10.0)
    container.serve()
    await asyncio.sleep(3.5)
    assert watched.reached == [(pytest.approx(3.0), True)]  # 2 s of delay, and the second success a period later
    container.serve(503)
    await asyncio.sleep(2.2)
    assert watched.reached[-1][1] is True
    await asyncio.sleep(0.9)
    assert watched.reached[-1] == (pytest.approx(6.0), False)
    watched.prober.stop()
    seen = len(watched.reached)
    await asyncio.sleep(10)
    assert len(watched.reached) == seen
