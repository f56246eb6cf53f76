"""A gateway that lets somebody else choose: what it asks of whom, and how it knows its replicas then."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from fakes.gateway.ext_proc import Picked, Refused
from fakes.gateway.router import Backend
from fakes.nodes.address import listen_address
from harness.kube.port import Json


class Picker(Protocol):
    async def ask(self, path: str, body: bytes) -> Picked | Refused:
        """Never raises for what the picker does: no answer is a refusal, too."""
        ...

    async def close(self) -> None: ...


def endpoint_of(pod: Json) -> Json:
    """A pod as the endpoint of a slice, for a gateway that knows its replicas from an InferencePool."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return {
        "targetRef": {"name": pod["metadata"]["name"]},
        "nodeName": pod["spec"].get("nodeName", ""),
        "conditions": {
            "ready": ready and listen_address(pod) is not None,
            "terminating": bool(pod["metadata"].get("deletionTimestamp")),
        },
    }


def backend_at(backends: Iterable[Backend], place: tuple[str, int]) -> Backend | None:
    return next((backend for backend in backends if backend.address == place), None)
