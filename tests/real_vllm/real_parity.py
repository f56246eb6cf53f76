"""The requests of the captures, asked of a real vLLM and of the fake: all that they answer, and their metrics."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from masking import Shown, shown
from raw_client import get, read_whole
from real_install import RealVllm
from real_server import real_server
from serving_alone import serving
from test_vllm_metrics import described
from test_vllm_parity import EXCHANGES, FLAGS

Address = tuple[str, int]
PLAIN = ("/health", "/ping", "/version", "/load", "/v1/models")


ENTRY = r'\{"token":"TEXT","logprob":-1\.0,"bytes":\[0\],"top_logprobs":\[(?:\{[^}]*\},?)*\]\}'
ENTRIES = re.compile(rf"({ENTRY})(?:,{ENTRY})+")
"""Of one token, or of several that came in one event."""


@dataclass(frozen=True, slots=True)
class Compared:
    name: str
    same: bool
    """But for how many tokens came in one event: a real server merges them when its process is short of CPU."""
    real: str = ""
    fake: str = ""


def request_bytes(exchange: dict[str, Any]) -> bytes:
    body = exchange["body"].encode()
    headers = {"host": "x", "content-type": "application/json", "content-length": str(len(body))} | exchange["headers"]
    lines = [f"{exchange['method']} {exchange['path']} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def compare(places: RealVllm, log: Path) -> list[Compared]:
    """Both get everything in the same order, so that their counters have counted the same."""
    async with real_server(places, log) as real, serving(FLAGS) as (_, fake):
        found = [_compared(e["name"], await _ask(real, request_bytes(e)), await _ask(fake, request_bytes(e)))
                 for e in EXCHANGES]  # fmt: skip
        for path in PLAIN:
            request = f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode()
            found.append(_compared(path, await _ask(real, request), await _ask(fake, request)))
        texts = [(await get(address, "/metrics")).body.decode() for address in (real, fake)]
    return found + _metrics(*texts)


async def _ask(address: Address, request: bytes) -> bytes:
    return await read_whole(address, request)


def _compared(name: str, real: bytes, fake: bytes) -> Compared:
    ours, theirs = shown(fake), shown(real)
    if name == "/v1/models":
        return _models(real, fake)
    same = ours == theirs or without_tokens(ours) == without_tokens(theirs)
    return Compared(name, same, str(theirs), str(ours))


def without_tokens(answer: Shown) -> Shown:
    """An answer without the events that only hold text: roles, ends, usage and framing stay."""
    kept = [chunk for chunk in answer.chunks if '"role"' in chunk or '"finish_reason":null' not in chunk]
    one = [ENTRIES.sub(r"\1", chunk) for chunk in kept]
    return replace(answer, chunks=tuple(one))


def _models(real: bytes, fake: bytes) -> Compared:
    """Where the model lies, and when a server was started, is its own."""
    bodies = [json.loads(raw.partition(b"\r\n\r\n")[2]) for raw in (real, fake)]
    for body in bodies:
        for model in body["data"]:
            model["root"] = model["created"] = "*"
            for permission in model["permission"]:
                permission["id"] = permission["created"] = "*"
    return Compared("/v1/models", json.dumps(bodies[0]) == json.dumps(bodies[1]), *(json.dumps(b) for b in bodies))


def _metrics(real: str, fake: str) -> list[Compared]:
    theirs, ours = described(real), described(fake)
    names = sorted({*theirs, *ours})
    return [
        Compared(f"/metrics {n}", theirs.get(n) == ours.get(n), str(theirs.get(n)), str(ours.get(n))) for n in names
    ]
