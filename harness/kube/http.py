"""The Kube port over HTTP, on the official client's asyncio part. No other module of the harness opens a connection to
Kubernetes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import aiohttp
import yaml
from kubernetes import aio
from kubernetes.aio.config import ConfigException

from harness.errors import BadInput, Where
from harness.kube.port import (
    NAMESPACE,
    POD,
    EventType,
    Gone,
    Json,
    ObjectList,
    Patch,
    PatchType,
    Resource,
    WatchClosed,
    WatchEvent,
    api_error,
    eviction_options,
)

_CALL_TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=5)
_WATCH_S = 300
# A server sends bookmarks about once a minute, so a watch that is silent for longer has lost its connection.
_WATCH_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=100)
_PAGE = 500
_LOGIN_S = 60
"""For a program that a kubeconfig names (users[].user.exec)."""
_RENEW_EACH_S = 5.0
"""Who is refused with a new token, too, is not asked to log in at each call."""
_UNAUTHORIZED = 401
_UNUSABLE = (ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, KeyError, AttributeError)
"""What the client raises on a kubeconfig in which something is missing, or is not what it should be."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def current_context(kubeconfig: Path) -> str:
    """BadInput where the file cannot be read or has none."""
    where = Where(str(kubeconfig))
    if kubeconfig.exists() and not kubeconfig.is_file():
        raise BadInput("is no file, and so no kubeconfig", where=where, hint="a pipe could be read only once")
    try:
        found = yaml.safe_load(kubeconfig.read_text())["current-context"]
    except (OSError, ValueError, yaml.YAMLError, KeyError, TypeError) as error:
        raise BadInput(f"no current context to read: {error}", where=where) from error
    return str(found)


class HttpKube:
    """Open until ``close``, or as an async context manager. Calls raise ``ConnectionError`` when the server cannot be
    reached or does not answer in time."""

    def __init__(self, kubeconfig: Path, context: str | None = None, field_manager: str = "gpu-harness") -> None:
        self._kubeconfig = kubeconfig
        self._context = context or None
        self._field_manager = field_manager
        self._client: aio.client.ApiClient | None = None
        self._opening = asyncio.Lock()
        self._renewed_at = -inf
        """Of the loop's clock: when credentials were read last."""

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()  # type: ignore[no-untyped-call]  # the client has no annotations here

    async def fingerprint(self) -> str:
        """The uid of kube-system: the same for as long as the cluster lives, whatever its address."""
        found = await self.get(NAMESPACE, "kube-system")
        return str(found["metadata"]["uid"])

    async def raw(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """GET of any path, e.g. of an aggregated API."""
        return await self._call("GET", path, query)

    async def time_of_day(self) -> datetime | None:
        """The server's, in whole seconds, from the ``Date`` that each answer of it carries."""
        try:
            response = await self._send("GET", "/version", None, None, None, _CALL_TIMEOUT)
            await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            raise ConnectionError(f"GET /version: no answer from the API server: {e or type(e).__name__}") from e
        try:
            return parsedate_to_datetime(response.headers.get("Date", ""))
        except ValueError:
            return None

    async def review_access(self, review: Json) -> Json:
        """The answer to a SelfSubjectAccessReview: ``status.allowed``."""
        return await self._call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", None, review)

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Json:
        return await self._call("GET", resource.path(namespace, name))

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> ObjectList:
        query = _query(labelSelector=label_selector, fieldSelector=field_selector)
        path = resource.path(namespace)
        try:
            return await self._pages(resource, path, query | {"limit": str(_PAGE)})
        except Gone:
            # The snapshot behind the pages expired while they were read; one unpaged answer is consistent too.
            return await self._pages(resource, path, query)

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str = "",
    ) -> AsyncIterator[WatchEvent]:
        query = _query(
            watch="true",
            resourceVersion=resource_version,
            allowWatchBookmarks="true",
            timeoutSeconds=str(_WATCH_S),
            labelSelector=label_selector,
        )
        response = await self._send("GET", resource.path(namespace), query, None, None, _WATCH_TIMEOUT)
        try:
            if response.status >= 400:
                raise api_error(response.status, _status_body(response.status, await response.read()))
            async for line in _lines(response):
                yield _watch_event(json.loads(line))
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            raise WatchClosed(f"the watch of {resource.plural} broke: {e or type(e).__name__}") from e
        finally:
            response.close()
        raise WatchClosed(f"the server ended the watch of {resource.plural}")

    async def create(self, resource: Resource, obj: Json, namespace: str | None = None) -> Json:
        where = namespace or (obj["metadata"].get("namespace") if resource.namespaced else None)
        return await self._call("POST", resource.path(where), self._managed(), _typed(resource, obj))

    async def update(self, resource: Resource, obj: Json, *, subresource: str | None = None) -> Json:
        meta = obj["metadata"]
        path = resource.path(meta.get("namespace"), meta["name"], subresource)
        body = obj if subresource == "scale" else _typed(resource, obj)
        return await self._call("PUT", path, self._managed(), body)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Patch,
        namespace: str | None = None,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str | None = None,
    ) -> Json:
        path = resource.path(namespace, name, subresource)
        return await self._call("PATCH", path, self._managed(), patch, type.value)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        grace_s: int | None = None,
        uid: str | None = None,
        propagation: str | None = None,
    ) -> None:
        options: Json = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if propagation is not None:
            options["propagationPolicy"] = propagation
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        await self._call("DELETE", resource.path(namespace, name), None, options)

    async def evict(self, name: str, namespace: str, *, grace_s: int | None = None, dry_run: bool = False) -> None:
        body: Json = {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": name, "namespace": namespace}}
        if options := eviction_options(grace_s, dry_run):
            body["deleteOptions"] = options
        await self._call("POST", POD.path(namespace, name, "eviction"), None, body)

    async def bind(self, name: str, namespace: str, node: str) -> None:
        body: Json = {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": namespace},
            "target": {"kind": "Node", "apiVersion": "v1", "name": node},
        }
        await self._call("POST", POD.path(namespace, name, "binding"), self._managed(), body)

    async def _pages(self, resource: Resource, path: str, query: dict[str, str]) -> ObjectList:
        items: list[Json] = []
        while True:
            answer = await self._call("GET", path, query)
            items += [_typed(resource, item) for item in answer.get("items") or []]
            token = answer["metadata"].get("continue")
            if not token:
                return ObjectList(tuple(items), answer["metadata"]["resourceVersion"])
            query = query | {"continue": token}

    async def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Patch | None = None,
        content_type: str = "application/json",
    ) -> Json:
        try:
            response = await self._send(method, path, query, body, content_type, _CALL_TIMEOUT)
            data = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as e:
            raise ConnectionError(f"{method} {path}: no answer from the API server: {e or type(e).__name__}") from e
        if response.status >= 400:
            raise api_error(response.status, _status_body(response.status, data))
        answer = json.loads(data)
        if not isinstance(answer, dict):
            raise ConnectionError(f"{method} {path}: the answer is no object: {data[:200]!r}")
        return answer

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Patch | None,
        content_type: str | None,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": "application/json"} | ({"Content-Type": content_type} if content_type else {})

        async def asked() -> aiohttp.ClientResponse:
            client = await self._opened()
            # The body is JSON already: it goes past the client's conversion of models, which walks through every field.
            _, url, sent, _, _ = await client.param_serialize(
                method,
                path,
                query_params=list((query or {}).items()),
                header_params=dict(headers),
                auth_settings=["BearerToken"],
            )
            try:
                answer = await client.call_api(method, url, sent, body, _request_timeout=limits)
            except (aiohttp.ClientError, TimeoutError, OSError) as e:
                raise ConnectionError(f"{method} {path}: cannot reach the API server: {e or type(e).__name__}") from e
            response: aiohttp.ClientResponse = answer.response
            return response

        response = await asked()
        if response.status == _UNAUTHORIZED and await self._renew():
            response.close()
            response = await asked()
        return response

    async def _opened(self) -> aio.client.ApiClient:
        async with self._opening:
            if self._client is None:
                self._client = await self._open()
            return self._client

    async def _renew(self) -> bool:
        """Whether there is another token now. What a plugin or a token file gave is over after some minutes, and runs
        last longer; the connection, with its watches, stays."""
        async with self._opening:
            now, client = asyncio.get_running_loop().time(), self._client
            if client is None or now - self._renewed_at < _RENEW_EACH_S:
                return False
            self._renewed_at = now
            try:
                fresh = await self._configuration()
            except BadInput:
                return False  # the refusal itself is told
            client.configuration.api_key = fresh.api_key
            return True

    async def _open(self) -> aio.client.ApiClient:
        configuration = await self._configuration()
        if urlsplit(str(configuration.host)).hostname in _LOOPBACK:
            # Proxies and .netrc have no business between programs of one machine, and looking them up takes a thread
            # for each request.
            configuration.client_session_kwargs = {"trust_env": False}
        client = aio.client.ApiClient(configuration)
        client.user_agent = self._field_manager
        self._renewed_at = asyncio.get_running_loop().time()
        return client

    async def _configuration(self) -> aio.client.Configuration:
        where = Where(str(self._kubeconfig))
        if not self._kubeconfig.is_file():
            raise BadInput("there is no kubeconfig here", where=where, hint="check --kubeconfig or KUBECONFIG")
        configuration = aio.client.Configuration()
        try:
            load = aio.config.load_kube_config
            async with asyncio.timeout(_LOGIN_S):
                await load(str(self._kubeconfig), self._context, configuration, False)  # type: ignore[no-untyped-call]  # nor here
            urlsplit(str(configuration.host)).port  # noqa: B018  # is looked at as it is read
        except TimeoutError:
            raise BadInput(
                f"its program for credentials said nothing within {_LOGIN_S} s", where=where,
                hint="does it wait for a login? kubectl with the same file and context shows what it asks",
            ) from None  # fmt: skip
        except _UNUSABLE as e:
            raise BadInput(f"the kubeconfig cannot be used: {e}", where=where) from e
        return configuration

    def _managed(self) -> dict[str, str]:
        return {"fieldManager": self._field_manager}


def _query(**values: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}


def _typed(resource: Resource, obj: Json) -> Json:
    """Items of a list come without kind and apiVersion, and controllers write objects without them."""
    return {"kind": resource.kind, "apiVersion": resource.api_version} | obj


def _status_body(status: int, data: bytes) -> Mapping[str, Any]:
    """The Status object, or one made up for an answer from something that is no API server."""
    try:
        body = json.loads(data)
    except ValueError:
        body = None
    if isinstance(body, dict) and body.get("kind") == "Status":
        return body
    return {"kind": "Status", "code": status, "reason": "", "message": data[:500].decode(errors="replace")}


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Whole lines only: what is left without an end when the stream breaks is no event."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield line


def _watch_event(raw: Json) -> WatchEvent:
    if raw["type"] == "ERROR":
        status = raw["object"]
        raise api_error(int(status.get("code") or 500), status)
    return WatchEvent(EventType(raw["type"]), raw["object"])
