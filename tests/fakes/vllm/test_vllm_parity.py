"""The requests of the captures, asked of the fake: the same status lines, headers and bytes as a real vLLM 0.32 sent.

``captures/exchanges.jsonl`` has what was asked of a real server and the bytes it answered with. Ids, times and texts
are masked on both sides (``masking.py``).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from masking import Shown, shown
from raw_client import read_whole

from fakes.clock import WallClock
from fakes.timing import Timing
from fakes.vllm.flags import parse_flags
from fakes.vllm.presets import PROFILES
from fakes.vllm.server import ModelServer

CAPTURES = Path(__file__).parent / "captures"
EXCHANGES = [json.loads(line) for line in (CAPTURES / "exchanges.jsonl").read_text().splitlines()]
FLAGS = "serve /models/tiny --served-model-name tiny --max-model-len 2048 --block-size 128"


async def asked(exchange: dict[str, Any], flags: str = FLAGS) -> bytes:
    wall = WallClock(datetime(2026, 11, 29, tzinfo=UTC))
    profile = PROFILES["llama-8b-h100"]
    server = ModelServer(parse_flags(flags.split()), profile, timing=Timing(100), rng=Random(1), wall=wall)
    address = server.bind()
    await server.listen()
    body = exchange["body"].encode()
    headers = {"host": "x", "content-type": "application/json", "content-length": str(len(body))} | exchange["headers"]
    lines = [f"{exchange['method']} {exchange['path']} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
    try:
        return await read_whole(address, "\r\n".join([*lines, "", ""]).encode() + body)
    finally:
        server.kill()
        await server.wait()


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda e: e["name"])
async def test_the_fake_answers_as_the_real_server_did(exchange: dict[str, Any]) -> None:
    assert shown(await asked(exchange)) == shown(exchange["answer"].encode())


def test_masks_hide_no_more_than_they_should() -> None:
    answers = [shown(e["answer"].encode()) for e in EXCHANGES]
    assert len(set(answers)) == len(set(map(_told_apart, EXCHANGES)))


def _told_apart(exchange: dict[str, Any]) -> Shown | str:
    """Captured answers that are the same but for what is masked: those of one request asked in several ways."""
    same = {
        "err-unknown-model-nostream": "err-unknown-model",
        "err-max-tokens-too-large-stream": "err-max-tokens-too-large",
        "err-max-tokens-too-large-completion": "err-max-tokens-too-large",
        "err-embeddings": "err-404",
        "err-unknown-field": "json-chat",
    }
    name: str = exchange["name"]
    return same.get(name, name)
