"""The control API of what the harness itself emulates (nodes, cloud, gateway, metrics, API doors), as faults see it.

A *knob* is a switch with a name and a target; it stands at its default until somebody turns it. A *verb* does something
once. The API is served by ``fakes/control/``; within a process of virtual time it is called directly.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import httpx

from harness.errors import TargetError
from harness.kube.port import Json

Value = Any
"""A JSON value, as a knob takes it. None is its default."""


class TargetGone(TargetError):
    """What a knob should be turned for is not there, or not any more."""


@dataclass(frozen=True, slots=True)
class CloudInstance:
    """``state`` is pending, running, interrupting or terminated."""

    id: str
    node: str
    pool: str
    state: str


class WorldControl(Protocol):
    """All calls raise ``TargetError`` when the world refuses, ``ConnectionError`` when it cannot be reached."""

    async def instances(self) -> tuple[CloudInstance, ...]: ...

    async def interrupt(self, instance_id: str, notice_s: float) -> None:
        """Gives ``notice_s`` scenario seconds of notice."""
        ...

    async def cancel_interruption(self, instance_id: str) -> str:
        """Says what it found; there being nothing left to cancel is no error."""
        ...

    async def pools(self, capacity_type: str = "") -> tuple[str, ...]:
        """Names of the pools of instances; of all capacity types if none is given."""
        ...

    async def knob(self, knob: str, target: str) -> Value:
        """Where it stands now; None where nobody turned it."""
        ...

    async def turn(self, knob: str, target: str, value: Value) -> None:
        """None turns it back to its default; that a target is gone is no error then. ``TargetGone`` with a value."""
        ...

    async def do(self, verb: str, target: str, arguments: Json) -> None: ...

    async def watches_begun(self) -> dict[str, int]:
        """By client: how many watches the API server has seen it begin."""
        ...


class ForwardingWorld:
    """A ``WorldControl`` in front of another one: before each change comes ``before_change``, which may refuse it."""

    def __init__(self, world: WorldControl) -> None:
        self._world = world

    async def before_change(self) -> None: ...

    async def instances(self) -> tuple[CloudInstance, ...]:
        return await self._world.instances()

    async def interrupt(self, instance_id: str, notice_s: float) -> None:
        await self.before_change()
        await self._world.interrupt(instance_id, notice_s)

    async def cancel_interruption(self, instance_id: str) -> str:
        await self.before_change()
        return await self._world.cancel_interruption(instance_id)

    async def pools(self, capacity_type: str = "") -> tuple[str, ...]:
        return await self._world.pools(capacity_type)

    async def knob(self, knob: str, target: str) -> Value:
        return await self._world.knob(knob, target)

    async def turn(self, knob: str, target: str, value: Value) -> None:
        await self.before_change()
        await self._world.turn(knob, target, value)

    async def do(self, verb: str, target: str, arguments: Json) -> None:
        await self.before_change()
        await self._world.do(verb, target, arguments)

    async def watches_begun(self) -> dict[str, int]:
        return await self._world.watches_begun()


class HttpWorldControl:
    """Over HTTP, at the connection's ``control_url``."""

    def __init__(self, base_url: str, timeout_s: float = 5.0) -> None:
        # The control API is ours and local: a proxy from the environment has no business in between.
        self._http = httpx.AsyncClient(base_url=base_url, timeout=timeout_s, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def instances(self) -> tuple[CloudInstance, ...]:
        answer = await self._ask("list its instances", "GET", "/v1/instances")
        items: list[dict[str, Any]] = answer["items"]
        return tuple(CloudInstance(i["id"], str(i.get("node") or ""), i["pool"], i["state"]) for i in items)

    async def interrupt(self, instance_id: str, notice_s: float) -> None:
        body = {"notice_s": notice_s}
        await self._ask(f"interrupt {instance_id}", "POST", f"/v1/instances/{instance_id}/interruption", body)

    async def cancel_interruption(self, instance_id: str) -> str:
        answer = await self._send("DELETE", f"/v1/instances/{instance_id}/interruption")
        match answer.status_code:
            case 200 | 204:
                return f"no interruption is planned for {instance_id} any more"
            case 404:
                return f"{instance_id} is not there any more"
            case 409:
                return f"{instance_id} is terminated already; heal brings no capacity back"
        raise _refused(f"cancel the interruption of {instance_id}", answer)

    async def pools(self, capacity_type: str = "") -> tuple[str, ...]:
        items: list[dict[str, str]] = (await self._ask("name its pools", "GET", "/v1/pools"))["items"]
        return tuple(p["name"] for p in items if capacity_type in ("", p["capacity_type"]))

    async def knob(self, knob: str, target: str) -> Value:
        return (await self._ask(f"show {knob} of {target}", "GET", f"/v1/knobs/{knob}/{target}"))["value"]

    async def turn(self, knob: str, target: str, value: Value) -> None:
        what = f"turn {knob} of {target}"
        answer = await self._send("PUT", f"/v1/knobs/{knob}/{target}", {"value": value})
        if answer.status_code == 404 and _reason(answer) == "unknown_target":
            raise TargetGone(_refused(what, answer).message)
        if not answer.is_success:
            raise _refused(what, answer)

    async def do(self, verb: str, target: str, arguments: Json) -> None:
        await self._ask(f"{verb} {target}", "POST", f"/v1/verbs/{verb}/{target}", arguments)

    async def watches_begun(self) -> dict[str, int]:
        return {**(await self._ask("count its watches", "GET", "/v1/watches"))}

    async def _ask(self, what: str, method: str, path: str, body: Json | None = None) -> Json:
        answer = await self._send(method, path, body)
        if not answer.is_success:
            raise _refused(what, answer)
        found: Json = answer.json()
        return found

    async def _send(self, method: str, path: str, body: Json | None = None) -> httpx.Response:
        try:
            return await self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise ConnectionError(f"control API {self._http.base_url}: {error or type(error).__name__}") from error


def _reason(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["reason"])
    except (ValueError, KeyError, TypeError):
        return ""


def _refused(what: str, answer: httpx.Response) -> TargetError:
    return TargetError(f"the world refused to {what}: HTTP {answer.status_code} {answer.text[:200].strip()}")
