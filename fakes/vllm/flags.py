"""vLLM's own command line, as far as the fake honours it.

A flag that changes what a client could see is either honoured or refused. Flags about speed, logging or loading, which
a latency profile stands for, are accepted and change nothing (``WITHOUT_EFFECT``).
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NoReturn

WITHOUT_EFFECT = (
    "tensor-parallel-size", "pipeline-parallel-size", "dtype", "quantization", "kv-cache-dtype", "load-format",
    "download-dir", "tokenizer", "tokenizer-mode", "swap-space", "seed", "max-log-len",
    "uvicorn-log-level", "distributed-executor-backend", "compilation-config", "optimization-level", "revision",
    "generation-config", "chat-template", "max-parallel-loading-workers", "attention-backend",
)  # fmt: skip
SWITCHES_WITHOUT_EFFECT = (
    "enforce-eager", "trust-remote-code",
    "enable-chunked-prefill", "disable-log-stats", "enable-log-requests", "no-enable-log-requests",
    "disable-log-requests", "disable-uvicorn-access-log", "async-scheduling", "no-async-scheduling",
)  # fmt: skip


COUNTS = (
    "max-num-seqs", "max-num-batched-tokens", "num-gpu-blocks-override", "max-num-queued-reqs",
    "max-num-queued-tokens",
)  # fmt: skip
SWITCHES = ("enable-server-load-tracking", "enable-request-id-headers", "enable-force-include-usage")
HONOURED = (
    "model", "served-model-name", "host", "port", "max-model-len", "block-size", "shutdown-timeout",
    "gpu-memory-utilization", "scheduling-policy", "api-key", "sse-keep-alive-interval", "enable-prefix-caching",
    "no-enable-prefix-caching", *COUNTS, *SWITCHES,
)  # fmt: skip
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
MAX_MODEL_LEN = 32_768
BLOCK_SIZE = 16


class FlagError(ValueError):
    """The command line is not one this server understands; a real one would exit with code 2."""


@dataclass(frozen=True, slots=True)
class ServerFlags:
    """None where the latency profile's own limit holds. ``shutdown_timeout_s`` is in scenario seconds."""

    model: str = MODEL
    served_model_names: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8000
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    max_model_len: int = MAX_MODEL_LEN
    block_size: int = BLOCK_SIZE
    num_gpu_blocks_override: int | None = None
    max_num_queued_reqs: int | None = None
    max_num_queued_tokens: int | None = None
    enable_prefix_caching: bool = True
    by_priority: bool = False
    api_keys: tuple[str, ...] = ()
    sse_keep_alive_s: float = 0.0
    """Clock seconds without an event after which a stream gets a comment; 0 for never."""
    gpu_memory_utilization: float = 0.92
    """How much of each GPU's memory it takes, for weights and KV cache together, before the first request."""
    shutdown_timeout_s: float = 0.0
    enable_server_load_tracking: bool = False
    enable_request_id_headers: bool = False
    enable_force_include_usage: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return self.served_model_names or (self.model,)

    @property
    def limits_queue(self) -> bool:
        return self.max_num_queued_reqs is not None or self.max_num_queued_tokens is not None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise FlagError(f"vllm serve: {message}")


def count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def seconds(text: str) -> float:
    value = float(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, got {text}")
    return value


def share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 1, got {value}")
    return value


@cache
def _parser() -> _Parser:
    parser = _Parser(prog="vllm serve", add_help=False, allow_abbrev=False)
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--model")
    parser.add_argument("--served-model-name", nargs="+", default=[])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    for name in COUNTS:
        parser.add_argument(f"--{name}", type=count)
    parser.add_argument("--max-model-len", type=count, default=MAX_MODEL_LEN)
    parser.add_argument("--block-size", type=count, default=BLOCK_SIZE)
    parser.add_argument("--shutdown-timeout", type=seconds, default=0.0)
    parser.add_argument("--gpu-memory-utilization", type=share, default=0.92)
    parser.add_argument("--scheduling-policy", choices=("fcfs", "priority"), default="fcfs")
    parser.add_argument("--api-key", nargs="+", default=[])
    parser.add_argument("--sse-keep-alive-interval", type=seconds, default=0.0)
    parser.add_argument("--enable-prefix-caching", action=argparse.BooleanOptionalAction, default=True)
    for name in SWITCHES:
        parser.add_argument(f"--{name}", action="store_true")
    for name in WITHOUT_EFFECT:
        parser.add_argument(f"--{name}")
    for name in SWITCHES_WITHOUT_EFFECT:
        parser.add_argument(f"--{name}", action="store_true")
    return parser


def _words(command: Sequence[str]) -> list[str]:
    """Drops what only starts the server, and spells flags with dashes, as vLLM takes both."""
    words = list(command)
    if words[:3] == ["python3", "-m", "vllm.entrypoints.openai.api_server"]:
        words = words[3:]
    if words[:2] == ["vllm", "serve"]:
        words = words[2:]
    elif words[:1] == ["serve"]:
        words = words[1:]
    spelled = []
    for word in words:
        name, equals, value = word.partition("=")
        spelled.append(name.replace("_", "-") + equals + value if word.startswith("--") else word)
    return spelled


def parse_flags(command: Sequence[str]) -> ServerFlags:
    """Reads ``command`` + ``args`` of a container (or only its args); raises ``FlagError``."""
    return _parsed(tuple(command))


@lru_cache(maxsize=256)  # all replicas of a Deployment have the same command line
def _parsed(command: tuple[str, ...]) -> ServerFlags:
    args, unknown = _parser().parse_known_args(_words(command))
    if unknown:
        flag = unknown[0].partition("=")[0]
        known = [f"--{name}" for name in (*HONOURED, *WITHOUT_EFFECT, *SWITCHES_WITHOUT_EFFECT)]
        near = difflib.get_close_matches(flag, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise FlagError(f"vllm serve: unrecognized arguments: {' '.join(unknown)}{hint}")
    model = args.model_tag or args.model or MODEL
    return ServerFlags(
        model=model,
        served_model_names=tuple(args.served_model_name),
        host=args.host,
        port=args.port,
        max_num_seqs=args.max_num_seqs,
        max_num_batched_tokens=args.max_num_batched_tokens,
        max_model_len=args.max_model_len,
        block_size=args.block_size,
        num_gpu_blocks_override=args.num_gpu_blocks_override,
        max_num_queued_reqs=args.max_num_queued_reqs,
        max_num_queued_tokens=args.max_num_queued_tokens,
        enable_prefix_caching=args.enable_prefix_caching,
        by_priority=args.scheduling_policy == "priority",
        api_keys=tuple(args.api_key),
        sse_keep_alive_s=args.sse_keep_alive_interval,
        shutdown_timeout_s=args.shutdown_timeout,
        gpu_memory_utilization=args.gpu_memory_utilization,
        enable_server_load_tracking=args.enable_server_load_tracking,
        enable_request_id_headers=args.enable_request_id_headers,
        enable_force_include_usage=args.enable_force_include_usage,
    )
