"""Single tries of probes, against a container that answers as scripted."""

from __future__ import annotations

from typing import Any

import pytest
from node_bench import ScriptedContainer

from fakes.nodes.probes import read_probe, try_once
from fakes.timing import Timing

HTTP, TCP, EXEC = {"httpGet": {"path": "/health", "port": 8000}}, {"tcpSocket": {"port": 8000}}, {"exec": {}}


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
        pytest.param(TCP, 404, None, id="tcp-connects"),
        pytest.param(TCP, None, "dial tcp 10.0.0.1:8000: connect: connection refused", id="tcp-refused"),
        pytest.param(EXEC, 200, "only httpGet and tcpSocket probes are emulated", id="exec"),
    ],
)
async def test_one_try(asked: dict[str, Any], status: int | None, message: str | None) -> None:
    container = ScriptedContainer()
    container.serve(status)
    probe = read_probe("Readiness", {"readinessProbe": asked}, "10.0.0.1", Timing())
    assert probe is not None
    assert await try_once(probe, container) == (None if message is None else f"Readiness probe failed: {message}")
