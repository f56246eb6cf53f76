"""What the proofs of real components share: small pods, conditions, and patience."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from harness.errors import TargetError
from harness.kube.port import Json

WITHIN_S = 150.0
NS = "default"
HEALTH = {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 1}


def pod(name: str, limits: Json, namespace: str = NS) -> Json:
    container = {"name": "c", "image": "sleep", "resources": {"limits": limits}}
    metadata = {"name": name, "namespace": namespace, "labels": {"app": "smoke"}}
    return {"metadata": metadata, "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}


def model_server(name: str, namespace: str = NS) -> Json:
    """One that serves tokens, on port 8000 of its own address or where its annotation says."""
    server = pod(name, {"nvidia.com/gpu": "1"}, namespace)
    ports = [{"name": "http", "containerPort": 8000}]
    server["spec"]["containers"][0] |= {"image": "vllm/vllm-openai:v0.32.0", "ports": ports, "readinessProbe": HEALTH}
    return server


def template(limits: Json, **more: object) -> Json:
    """A pod template of what ``pod`` makes."""
    return {"metadata": {"labels": {"app": "smoke"}}, "spec": pod("", limits)["spec"] | more}


def is_true(obj: Json, condition: str) -> bool:
    found = (obj.get("status") or {}).get("conditions") or ()
    return any(c["type"] == condition and c["status"] == "True" for c in found)


def runs(obj: Json) -> bool:
    return (obj.get("status") or {}).get("phase") == "Running" and not obj["metadata"].get("deletionTimestamp")


async def until(look: Callable[[], Awaitable[str]]) -> None:
    """``look`` says what is still wrong; TargetError with the last of it."""
    wrong = ""
    try:
        async with asyncio.timeout(WITHIN_S):
            while wrong := await look():
                await asyncio.sleep(0.5)
    except TimeoutError:
        raise TargetError(f"not within {WITHIN_S:g} s: {wrong}") from None
