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


HELP = {
    "max-num-seqs": "requests in one step; default: the profile's",
    "max-num-batched-tokens": "tokens in one step; default: the profile's",
    "num-gpu-blocks-override": "blocks of KV cache; default: the profile's",
    "max-num-queued-reqs": "requests in progress beyond which others get a 503",
    "max-num-queued-tokens": "prompt tokens not yet computed beyond which others get a 503",
    "enable-server-load-tracking": "/load counts requests in progress",
    "enable-request-id-headers": "answers carry X-Request-Id",
    "enable-force-include-usage": "usage on every event",
}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """vLLM's own, as one group, and those without effect as another."""
    add = parser.add_argument_group("vLLM's own").add_argument
    add("model_tag", nargs="?", metavar="MODEL")
    add("--model", help=f"default: {MODEL}")
    add("--served-model-name", nargs="+", default=[], metavar="NAME", help="what requests call it; default: MODEL")
    add("--host", default="127.0.0.1")
    add("--port", type=int, default=8000)
    for name in COUNTS:
        add(f"--{name}", type=count, metavar="N", help=HELP[name])
    add("--max-model-len", type=count, default=MAX_MODEL_LEN, metavar="N", help="tokens of prompt and answer together")
    add("--block-size", type=count, default=BLOCK_SIZE, metavar="N", help="tokens in a block of KV cache")
    add("--shutdown-timeout", type=seconds, default=0.0, metavar="S", help="to finish after SIGTERM; 0: none")
    add("--gpu-memory-utilization", type=share, default=0.92, metavar="0..1")
    add("--scheduling-policy", choices=("fcfs", "priority"), default="fcfs")
    add("--api-key", nargs="+", default=[], metavar="KEY")
    add("--sse-keep-alive-interval", type=seconds, default=0.0, metavar="S", help="comments in idle streams; 0: none")
    add("--enable-prefix-caching", action=argparse.BooleanOptionalAction, default=True)
    for name in SWITCHES:
        add(f"--{name}", action="store_true", help=HELP[name])
    add = parser.add_argument_group("vLLM's own, without effect here").add_argument
    for name in WITHOUT_EFFECT:
        add(f"--{name}", metavar="…")
    for name in SWITCHES_WITHOUT_EFFECT:
        add(f"--{name}", action="store_true")


@cache
def _parser() -> _Parser:
    parser = _Parser(prog="vllm serve", add_help=False, allow_abbrev=False)
    add_flags(parser)
    return parser


def spelled(command: Sequence[str]) -> list[str]:
    """Drops what only starts the server, and spells flags with dashes, as vLLM takes both."""
    words = list(command)
    if words[:3] == ["python3", "-m", "vllm.entrypoints.openai.api_server"]:
        words = words[3:]
    if words[:2] == ["vllm", "serve"]:
        words = words[2:]
    elif words[:1] == ["serve"]:
        words = words[1:]
    found = []
    for word in words:
        name, equals, value = word.partition("=")
        found.append(name.replace("_", "-") + equals + value if word.startswith("--") else word)
    return found


def refuse_unknown(unknown: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """Raises FlagError with the flag that comes nearest."""
    if unknown:
        known = [flag for action in parser._actions for flag in action.option_strings if flag.startswith("--")]
        near = difflib.get_close_matches(unknown[0].partition("=")[0], known, n=1, cutoff=0.75)
        hint = f"; did you mean {near[0]}?" if near else "; this fake models nothing of the kind (see --help)"
        raise FlagError(f"vllm serve: unrecognized arguments: {' '.join(unknown)}{hint}")


def parse_flags(command: Sequence[str]) -> ServerFlags:
    """Reads ``command`` + ``args`` of a container (or only its args); raises ``FlagError``."""
    return _parsed(tuple(command))


@lru_cache(maxsize=256)  # all replicas of a Deployment have the same command line
def _parsed(command: tuple[str, ...]) -> ServerFlags:
    args, unknown = _parser().parse_known_args(spelled(command))
    refuse_unknown(unknown, _parser())
    return flags_of(args)


def flags_of(args: argparse.Namespace) -> ServerFlags:
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
