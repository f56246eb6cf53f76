"""How switches are turned while the plugin runs: by a file, and over a unix socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from fakes.control.knobs import BadValue, ControlError
from fakes.device_plugin.plugin import Plugin
from fakes.device_plugin.service import Say

LOOK_S = 0.2


async def follow_file(path: Path, plugin: Plugin, say: Say) -> None:
    """``{"nvidia.com/gpu": {"unhealthy": 2}, "*": {…}}``: all that is not at its default, the file as a whole. Without
    the file, all is. A file that makes no sense changes nothing, and is complained of once. What was read stands in
    ``taken_of(path)``: whoever wrote the file can see from when on it holds."""
    seen: bytes | None = None
    while True:
        now = _read(path)
        if now != seen and (now is not None or seen is not None):
            try:
                plugin.set_all(_wanted(now))
            except ControlError as error:
                say("bad_order", file=str(path), error=str(error))
            _tell(taken_of(path), now)
        seen = now
        await asyncio.sleep(LOOK_S)


def taken_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.taken")


@contextlib.asynccontextmanager
async def listen(path: Path, plugin: Plugin) -> AsyncIterator[None]:
    """One JSON object a line: ``{"switch": "unhealthy", "value": 2, "resource": "nvidia.com/gpu"}`` turns one (without
    a resource: of all), ``{}`` asks how things stand. Answered with that, or with ``{"error": …}``."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            while line := await _line(reader):
                writer.write(json.dumps(_obey(plugin, line)).encode() + b"\n")
                await writer.drain()

    path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(serve, path)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


async def _line(reader: asyncio.StreamReader) -> bytes:
    """One that is longer than any order is no JSON."""
    try:
        return await reader.readline()
    except ValueError:
        return b"too long"


async def order(path: Path, message: dict[str, Any]) -> dict[str, Any]:
    """The other end of ``listen``."""
    reader, writer = await asyncio.open_unix_connection(path)
    with contextlib.closing(writer):
        writer.write(json.dumps(message).encode() + b"\n")
        await writer.drain()
        line = await reader.readline()
        if not line:
            raise ConnectionResetError(f"{path}: the plugin ended before it answered")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _obey(plugin: Plugin, line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
        if not isinstance(message, dict) or not message.keys() <= {"switch", "value", "resource"}:
            raise BadValue('an order is {"switch": NAME, "value": VALUE, "resource": NAME}, or {}')
        if message:
            plugin.turn(str(message.get("switch")), str(message.get("resource", "*")), message.get("value"))
    except (ValueError, RecursionError) as error:
        return {"error": f"not JSON: {error}"}
    except ControlError as error:
        return {"error": str(error)}
    return plugin.state()


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _tell(path: Path, content: bytes | None) -> None:
    with contextlib.suppress(OSError):  # a folder that may only be read: nobody waits for it there
        if content is None:
            path.unlink(missing_ok=True)
            return
        part = path.with_name(f"{path.name}.part")
        part.write_bytes(content)
        part.rename(path)


def _wanted(content: bytes | None) -> dict[str, dict[str, Any]]:
    if content is None:
        return {}
    try:
        wanted = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadValue(f"not JSON: {error}") from error
    if not isinstance(wanted, dict) or not all(isinstance(values, dict) for values in wanted.values()):
        raise BadValue('must be {"RESOURCE or *": {"SWITCH": VALUE}}')
    return wanted
