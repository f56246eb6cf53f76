"""What the proofs of real components share: small pods, conditions, and patience."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from harness.kube.port import Json
from harness.stack.patience import Look, until_nothing_is_wrong

WITHIN_S, LOOK_S = 150.0, 0.25
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


async def until(look: Look) -> None:
    """TargetError with what was still wrong at the end."""
    await until_nothing_is_wrong(look, "not as it should be", WITHIN_S, LOOK_S)


async def until_it_is(look: Callable[[], Awaitable[bool]], otherwise: str) -> None:
    """For what can be wrong in one way only, which is ``otherwise``."""

    async def wrong() -> str:
        return "" if await look() else otherwise

    await until(wrong)
