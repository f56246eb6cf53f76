"""Gives objects to an API server, and waits until it says of them what it should."""

from __future__ import annotations

from harness.errors import TargetError
from harness.kube.port import AlreadyExists, ApiError, Json, Kube, Resource
from harness.stack.patience import until_nothing_is_wrong


async def create(kube: Kube, resource: Resource, obj: Json) -> None:
    """One that is there already stays as it is. TargetError, with its name, for one that is refused."""
    try:
        await kube.create(resource, obj)
    except AlreadyExists:
        return
    except ApiError as error:
        name = (obj.get("metadata") or {}).get("name", "without a name")
        raise TargetError(f"the API server does not take {resource.kind} {name}: {error}") from error


async def until_true(kube: Kube, resource: Resource, name: str, condition: str) -> None:
    async def look() -> str:
        found = (await kube.get(resource, name)).get("status") or {}
        for c in found.get("conditions") or ():
            if c["type"] == condition:
                return "" if c["status"] == "True" else f"{c.get('reason', '')}: {c.get('message', '')}"
        return f"no condition {condition} yet"

    await until_nothing_is_wrong(look, f"{resource.kind} {name} did not become {condition}")
