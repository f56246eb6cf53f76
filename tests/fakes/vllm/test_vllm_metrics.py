"""/metrics against what a real vLLM 0.32 exports, idle and after requests: every name, kind, help, label and bucket.

``captures/metrics.json`` was made of its whole texts. A label whose values depend on the server or its client is ``*``.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raw_client import chat_body, get, post
from serving_alone import Address, serving

from fakes.metrics.parse import parse
from fakes.vllm.metrics import EngineMetrics

CAPTURED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "captures/metrics.json").read_text())
FREE = ("http_", "python_info", "vllm:cache_config_info")


@dataclass
class Described:
    kind: str
    help: str
    labels: list[dict[str, str]] = field(default_factory=list)
    buckets: list[str] = field(default_factory=list)


def described(text: str) -> dict[str, Described]:
    """What a text of metrics declares."""
    found: dict[str, Described] = {}
    helps: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# HELP"):
            _, _, name, *help = line.split(" ", 3)
            helps[name] = "".join(help)
        elif line.startswith("# TYPE"):
            _, _, name, kind = line.split()
            found[name] = Described(kind, helps[name])
        else:
            match = re.match(r"([^{ ]+)(\{.*\})? (\S+)$", line)
            assert match is not None, line
            add_series(found, match[1], dict(re.findall(r'(\w+)="([^"]*)"', match[2] or "")))
    return found


def add_series(found: dict[str, Described], name: str, labels: dict[str, str]) -> None:
    stem = re.sub(r"_(bucket|count|sum)$", "", name)
    base = name if name in found else stem
    bound = labels.pop("le", None)
    if bound is not None and bound not in found[base].buckets:
        found[base].buckets.append(bound)
    if base.startswith(FREE):
        labels = dict.fromkeys(labels, "*")
    if (name == base or name.endswith("_count")) and labels not in found[base].labels:
        found[base].labels.append(labels)


async def text_after_requests(address: Address) -> str:
    for exchange in [await post(address, chat_body(3)), await post(address, chat_body(3, stream=False))]:
        await exchange.head()
        await exchange.rest()
    return (await get(address, "/metrics")).body.decode()


async def test_every_metric_of_a_real_server_is_there_and_no_other() -> None:
    async with serving("--served-model-name tiny --max-model-len 2048") as (_, address):
        text = (await text_after_requests(address)).replace('model_name="m"', 'model_name="tiny"')
    ours = described(text)
    assert set(ours) == set(CAPTURED)
    for name, real in CAPTURED.items():
        assert ours[name] == Described(**real), name


def test_handlers_appear_with_their_first_request() -> None:
    metrics = EngineMetrics("tiny", max_model_len=2048, cache_config={}, created_s=0.0)
    assert "http_requests_total{" not in metrics.text()
    for _ in range(2):
        metrics.http.observe("/v1/models", "GET", 200, asked_bytes=0, answered_bytes=444, seconds=0.2)
    lines = metrics.text().splitlines()
    assert 'http_requests_total{handler="/v1/models",method="GET",status="2xx"} 2.0' in lines
    assert 'http_response_size_bytes_sum{handler="/v1/models"} 888.0' in lines
    assert 'http_request_duration_seconds_bucket{handler="/v1/models",le="0.5",method="GET"} 2.0' in lines


async def sums(address: Address) -> dict[str, float]:
    """By name, labels of the sources of tokens and the reasons of ends included."""
    found: dict[str, float] = {}
    for sample in parse((await get(address, "/metrics")).body.decode()):
        key = sample.name + "".join(sample.labels.get(k, "") for k in ("source", "finished_reason", "device", "reason"))
        found[key] = found.get(key, 0) + sample.value
    return found


async def test_what_moves_under_load_moves_as_it_should() -> None:
    prompt = " ".join(f"w{i}" for i in range(200))
    body = json.dumps({"model": "m", "prompt": prompt, "max_tokens": 8, "ignore_eos": True}).encode()
    async with serving("--max-num-seqs 2 --block-size 16") as (server, address):
        before = await sums(address)
        for _ in range(2):
            exchange = await post(address, body, "/v1/completions")
            await exchange.head()
            await exchange.rest()
        held = [await post(address, chat_body(30_000)) for _ in range(5)]
        async with asyncio.timeout(30):
            while server.engine.in_flight < 5 or (under_load := await sums(address))["vllm:num_requests_running"] < 2:
                await asyncio.sleep(0.002)
        for exchange in held:
            exchange.close()
    moved = {name: value - before.get(name, 0) for name, value in under_load.items()}
    prefix = 192  # twelve blocks of 16; the second prompt finds them all
    want = {
        "vllm:num_requests_running": 2,
        "vllm:num_requests_waiting": 3,
        "vllm:num_requests_waiting_by_reasoncapacity": 3,
        "vllm:prefix_cache_hits_total": prefix,
        "vllm:prompt_tokens_cached_total": prefix,
        "vllm:prompt_tokens_by_source_totallocal_cache_hit": prefix,
        "vllm:request_success_totallength": 2,
        "vllm:request_success_totalabort": 0,
        "vllm:request_params_n_count": 2,
        "vllm:request_max_num_generation_tokens_sum": 16,
        "vllm:request_prefill_kv_computed_tokens_sum": 400 - prefix,
        "vllm:request_prompt_tokens_sum": 400,
        "http_requests_total": 2,
    }
    assert {name: moved[name] for name in want} == want
    assert 0 < moved["vllm:kv_cache_usage_perc"] < 1
    assert moved["process_cpu_seconds_total"] > 0
