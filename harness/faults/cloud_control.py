"""The control plane of an emulated cloud, as faults see it: instances and their spot notices."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import httpx

from harness.errors import TargetError


@dataclass(frozen=True, slots=True)
class CloudInstance:
    """``state`` is pending, running, interrupting or terminated."""

    id: str
    node: str
    pool: str
    state: str


class CloudControl(Protocol):
    """All calls raise ``TargetError`` when the cloud refuses, ``ConnectionError`` when it cannot be reached."""

    async def instances(self) -> tuple[CloudInstance, ...]: ...

    async def interrupt(self, instance_id: str, notice_s: float) -> None:
        """Gives ``notice_s`` scenario seconds of notice."""
        ...

    async def cancel_interruption(self, instance_id: str) -> str:
        """Says what it found; there being nothing left to cancel is no error."""
        ...


class HttpCloudControl:
    """Over HTTP, at the connection's ``control_url``."""

    def __init__(self, base_url: str, timeout_s: float = 5.0) -> None:
        # The control plane is ours and local: a proxy from the environment has no business in between.
        self._http = httpx.AsyncClient(base_url=base_url, timeout=timeout_s, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def instances(self) -> tuple[CloudInstance, ...]:
        answer = await self._send("GET", "/v1/instances")
        if answer.status_code != 200:
            raise _refused("list its instances", answer)
        items: list[dict[str, Any]] = answer.json()["items"]
        return tuple(CloudInstance(i["id"], str(i.get("node") or ""), i["pool"], i["state"]) for i in items)

    async def interrupt(self, instance_id: str, notice_s: float) -> None:
        answer = await self._send("POST", f"/v1/instances/{instance_id}/interruption", {"notice_s": notice_s})
        if answer.status_code != 201:
            raise _refused(f"interrupt {instance_id}", answer)

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

    async def _send(self, method: str, path: str, body: dict[str, float] | None = None) -> httpx.Response:
        try:
            return await self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise ConnectionError(
                f"cloud control plane {self._http.base_url}: {error or type(error).__name__}"
            ) from error


def _refused(what: str, answer: httpx.Response) -> TargetError:
    return TargetError(f"the cloud refused to {what}: HTTP {answer.status_code} {answer.text[:200].strip()}")
