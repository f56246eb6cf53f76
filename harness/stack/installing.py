"""Gives objects to an API server, and waits until it says of them what it should."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from harness.errors import TargetError
from harness.kube.port import AlreadyExists, ApiError, Json, Kube, Resource

WITHIN_S = 30.0


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


async def until_nothing_is_wrong(look: Callable[[], Awaitable[str]], failure: str, within_s: float = WITHIN_S) -> None:
    """``look`` says what is still wrong, in words; TargetError with the last of them after ``within_s``."""
    wrong = ""
    try:
        async with asyncio.timeout(within_s):
            while wrong := await _said(look):
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise TargetError(f"{failure} within {within_s:g} s: {wrong}") from None


async def _said(look: Callable[[], Awaitable[str]]) -> str:
    try:
        return await look()
    except (ApiError, ConnectionError) as error:
        return str(error)
