"""Plays a case against one server and writes down what it answered, without what differs by nature."""

from __future__ import annotations

import asyncio
import io
import json
import re
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from case import Call, Case, Events, Watch

ANSWER_S = 15.0
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_ACCESS = re.compile(r"kube-api-access-[a-z0-9]{5}")
_CLUSTER_IP = re.compile(r"\b10\.96\.\d+\.\d+\b")
_AGE = re.compile(r"^\d+s$")
_HEADERS = ("Content-Type", "Warning", "Retry-After", "Location")


class SetupFailed(Exception):
    """A step that only prepares did not succeed: the case says nothing."""


@dataclass(slots=True)
class Names:
    """Identities in the order in which they are first seen, so that two servers' answers can be compared."""

    uids: dict[str, str] = field(default_factory=dict)
    prefixes: set[str] = field(default_factory=set)
    """What requests asked to be the beginning of a generated name."""
    versions: dict[str, str] = field(default_factory=dict)

    def uid(self, text: str) -> str:
        return self.uids.setdefault(text, f"uid#{len(self.uids) + 1}")

    def version(self, text: str) -> str:
        return self.versions.setdefault(text, f"version#{len(self.versions) + 1}")


@dataclass(slots=True)
class Player:
    """One server. ``play`` may run for several cases at once: they share nothing but the server."""

    http: aiohttp.ClientSession

    async def play(self, case: Case, namespace: str) -> list[Any]:
        run = _Run(self.http, namespace)
        try:
            async with asyncio.timeout(60):
                await run.furnish(case)
                for step in case.steps:
                    await run.step(step)
        finally:
            if run.watching is not None:
                run.watching.close()
        return run.seen


@dataclass(slots=True)
class _Run:
    http: aiohttp.ClientSession
    namespace: str
    names: Names = field(default_factory=Names)
    saved: dict[str, Any] = field(default_factory=dict)
    seen: list[Any] = field(default_factory=list)
    watching: aiohttp.ClientResponse | None = None

    async def furnish(self, case: Case) -> None:
        body = {"metadata": {"name": self.namespace}}
        async with self.http.post("/api/v1/namespaces", json=body) as answer:
            if answer.status not in (201, 409):
                raise SetupFailed(await answer.text())
        if case.pods:
            for what in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
                path = f"/api/v1/namespaces/{self.namespace}/{what}"
                await self.step(Call("GET", path, setup=True, until=True))

    async def step(self, step: Call | Watch | Events) -> None:
        match step:
            case Call():
                await self._call(step)
            case Watch():
                path = self._filled(step.path)
                self.watching = await self.http.get(path, headers={"Accept": step.accept})
                if self.watching.status != 200:
                    raise SetupFailed(f"watch {path}: {await self.watching.text()}")
            case Events():
                await self._events(step)

    async def _call(self, call: Call) -> None:
        until = asyncio.get_running_loop().time() + ANSWER_S
        while True:
            status, headers, data = await self._send(call)
            done = status < 400 or not call.until
            if done or asyncio.get_running_loop().time() > until:
                break
            await asyncio.sleep(0.05)
        body = _read(data, call.watch)
        if call.save and isinstance(body, dict):
            self.saved[call.save] = body
        if call.setup:
            if status >= 400:
                raise SetupFailed(f"{call.method} {call.path}: {status} {data[:500]!r}")
            return
        if call.pick is not None:
            body = call.pick(body)
        shown = {k: headers.getall(k) for k in _HEADERS if k in headers}
        self.seen.append({"status": status, "headers": shown, "body": self._normal(body, call.drop)})

    async def _send(self, call: Call) -> tuple[int, Any, bytes]:
        path, body = self._filled(call.path), self._filled(call.body)
        data: Any = None
        if isinstance(body, dict) and isinstance(body.get("metadata"), dict) and body["metadata"].get("generateName"):
            self.names.prefixes.add(body["metadata"]["generateName"])
        headers = {"Accept": call.accept, "User-Agent": "conformance/1"} | self._filled(dict(call.headers))
        if body is not None:
            text = body if isinstance(body, str | bytes) else json.dumps(body)
            data = io.BytesIO(text.encode() if isinstance(text, str) else text)
            headers.setdefault("Content-Type", call.type)
        async with asyncio.timeout(ANSWER_S):
            async with self.http.request(call.method, path, data=data, headers=headers) as answer:
                return answer.status, answer.headers, await answer.read()

    async def _events(self, step: Events) -> None:
        assert self.watching is not None
        found = []
        try:
            async with asyncio.timeout(ANSWER_S):
                while len(found) < step.count:
                    line = await self.watching.content.readline()
                    if not line:
                        found.append("the watch ended")
                        break
                    event = json.loads(line)
                    if event["type"] != "BOOKMARK":
                        found.append(event)
        except TimeoutError:
            found.append("no further event")
        self.seen.append({"events": [self._normal(e, step.drop) for e in found]})

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str):
            return re.sub(r"\{(ns|[a-z0-9]+\.(?:uid|version|name|next))\}", self._value, value)
        if isinstance(value, dict):
            return {self._filled(k): self._filled(v) for k, v in value.items()}
        return [self._filled(v) for v in value] if isinstance(value, list) else value

    def _value(self, found: re.Match[str]) -> str:
        if found[1] == "ns":
            return self.namespace
        name, _, what = found[1].partition(".")
        meta = self.saved[name]["metadata"]
        return str(meta[{"uid": "uid", "version": "resourceVersion", "name": "name", "next": "continue"}[what]])

    def _normal(self, body: Any, drop: tuple[str, ...]) -> Any:
        return _Normaliser(self.names, [tuple(d.split(".")) for d in drop]).value(body, ())


def _read(data: bytes, lines: bool) -> Any:
    try:
        if lines:
            events = [json.loads(line) for line in data.splitlines() if line]
            return [e for e in events if not _is_plain_bookmark(e)]
        return json.loads(data) if data else None
    except ValueError:
        return data.decode(errors="replace")


def _is_plain_bookmark(event: Any) -> bool:
    """One that comes when it comes; the one that ends the initial events is no such."""
    return bool(event["type"] == "BOOKMARK" and not event["object"]["metadata"].get("annotations"))


@dataclass(slots=True)
class _Normaliser:
    names: Names
    drop: list[tuple[str, ...]]

    def value(self, value: Any, path: tuple[str, ...]) -> Any:
        if any(_matches(d, path) for d in self.drop):
            return "<dropped>"
        if isinstance(value, dict):
            return self._object(value, path)
        if isinstance(value, list):
            items = _sorted_managers(value) if path and path[-1] == "managedFields" else value
            if any(isinstance(v, dict) and v.get("reason") == "FieldManagerConflict" for v in items):
                items = sorted(items, key=lambda v: str(v.get("field")))  # the real server has no order among them
            return [self.value(v, (*path, str(i))) for i, v in enumerate(items)]
        return self._text(value) if isinstance(value, str) else value

    def _object(self, value: dict[str, Any], path: tuple[str, ...]) -> Any:
        is_list = "items" in value or "rows" in value
        found = {}
        for key, item in sorted(value.items()):
            at = (*path, key)
            if any(_matches(d, at) for d in self.drop):
                found[key] = "<dropped>"
            elif key == "resourceVersion" and isinstance(item, str) and item.isdigit() and item != "0":
                in_list = path and path[-1] == "metadata" and self._in_list
                found[key] = "<list version>" if in_list else self.names.version(item)
            elif key == "metadata" and isinstance(item, dict):
                self._in_list = is_list
                found[key] = self.value(item, at)
                self._in_list = False
            elif key == "ca.crt":
                found[key] = "<certificate>"
            elif key == "continue" and item:
                found[key] = "<continue>"
            elif key == "cells" and isinstance(item, list):
                found[key] = [_AGE.sub("<age>", c) if isinstance(c, str) else c for c in self.value(item, at)]
            elif key == "nodePort" and isinstance(item, int) and item:
                found[key] = "<node port>"
            elif key in ("storageVersionHash", "serverAddress"):
                continue
            else:
                found[self._text(key)] = self.value(item, at)
        return found

    _in_list: bool = False

    def _text(self, text: str) -> str:
        for prefix in self.names.prefixes:
            text = re.sub(re.escape(prefix) + r"[a-z0-9]{5}\b", f"{prefix}<generated>", text)
        text = _UUID.sub(lambda m: self.names.uid(m[0]), text)
        text = _TIME.sub(lambda m: "<micro time>" if m[1] else "<time>", text)
        text = _CLUSTER_IP.sub("<cluster ip>", _ACCESS.sub("kube-api-access-<random>", text))
        if "recondition" in text or "resource version" in text or "StorageError" in text:
            text = re.sub(r"\b\d+\b", lambda m: self.names.versions.get(m[0], "<number>"), text)
        return text


def _matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return len(pattern) == len(path) and all(p in ("*", s) for p, s in zip(pattern, path, strict=True))


def _sorted_managers(entries: list[Any]) -> list[Any]:
    return sorted(entries, key=lambda e: (e.get("manager", ""), e.get("operation", ""), e.get("subresource", "")))


def differences(ours: Any, real: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """(where, ours, real) for each leaf or branch that is not the same."""
    if isinstance(ours, dict) and isinstance(real, dict):
        found = []
        for key in sorted(ours.keys() | real.keys()):
            at = f"{path}.{key}" if path else key
            found += differences(ours.get(key, "<absent>"), real.get(key, "<absent>"), at)
        return found
    if isinstance(ours, list) and isinstance(real, list):
        found = []
        for i in range(max(len(ours), len(real))):
            one = ours[i] if i < len(ours) else "<absent>"
            other = real[i] if i < len(real) else "<absent>"
            found += differences(one, other, f"{path}[{i}]")
        return found
    return [] if ours == real and type(ours) is type(real) else [(path, ours, real)]
