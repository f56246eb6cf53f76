"""Reads the body of a completion request, and refuses what a real server refuses, in its words.

**Prompt tokens** are counted by one rule: a token per whitespace-separated word of all message contents (or of the
prompt), at least one; a prompt given as token ids counts its ids. No chat template is added.

**Output tokens**: with ``ignore_eos`` exactly ``max_tokens``. Otherwise the model "says" its end-of-sequence token at a
length that depends on the prompt alone, as a temperature of 0 would; that token counts, and has no text.

Unknown fields are ignored, as in the original; so are sampling parameters, since the text means nothing anyway.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from zlib import crc32

NATURAL_MEDIAN_TOKENS = 180
NATURAL_SIGMA = 0.8
EOS_TOKEN = "2"
EOS_BIAS = 50
"""From this ``logit_bias`` on, the end of sequence is the model's next word as soon as it is allowed."""


class RequestRefused(Exception):
    """An answer that is an error: status and the body's fields."""

    def __init__(self, status: int, type: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.type = type
        self.message = message
        self.param = param

    def body(self) -> bytes:
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.status}
        return json.dumps({"error": error}, separators=(",", ":")).encode()


def bad_request(message: str, param: str | None = None) -> RequestRefused:
    """Refused by the server's own checks."""
    return RequestRefused(400, "BadRequestError", message, param)


def invalid_body(kind: str, loc: str, msg: str, got: str, context: str = "") -> RequestRefused:
    """Refused by the validation of the body's shape: another spelling of the type."""
    ctx = f", 'ctx': {{'error': '{context}'}}" if context else ""
    message = f"1 validation error:\n  {{'type': '{kind}', 'loc': '{loc}', 'msg': '{msg}', 'input': '{got}'{ctx}}}"
    return RequestRefused(400, "Bad Request", message, loc)


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    chat: bool
    model: str
    stream: bool
    include_usage: bool
    continuous_usage: bool
    prompt_tokens: int
    max_tokens: int
    stop_at: int
    stop_reason: str
    text_seed: int
    prompt: Sequence[str] | Sequence[int] = ()
    """Its tokens, by which a prefix is known again."""
    n: int = 1
    top_logprobs: int | None = None
    """None without logprobs."""
    priority: int = 0


def parse_request(body: bytes, *, chat: bool, names: tuple[str, ...], max_model_len: int) -> CompletionRequest:
    raw = _object(body)
    model = raw.get("model") or names[0]
    if model not in names:
        aliases = ", ".join(names)
        message = f"The model `{model}` does not exist. Valid aliases: {aliases}."
        raise RequestRefused(404, "NotFoundError", message, "model")
    prompt, seed = _chat_prompt(raw) if chat else _text_prompt(raw)
    prompt_tokens = max(1, len(prompt))
    stream, options = _stream_options(raw)
    n = _check_sampling(raw)
    top_logprobs = _logprobs(raw, chat)
    max_tokens = _max_tokens(raw, chat, prompt_tokens, max_model_len)
    stop_at, reason = _stop(raw, max_tokens, seed)
    return CompletionRequest(
        chat=chat,
        model=str(model),
        stream=stream,
        include_usage=bool(options.get("include_usage")),
        continuous_usage=bool(options.get("continuous_usage_stats")),
        prompt_tokens=prompt_tokens,
        max_tokens=max_tokens,
        stop_at=stop_at,
        stop_reason=reason,
        text_seed=seed,
        prompt=prompt,
        n=n,
        top_logprobs=top_logprobs,
        priority=_integer(raw, "priority") or 0,
    )


def _object(body: bytes) -> dict[str, Any]:
    if not body.strip():
        raise invalid_body("missing", "body", "Field required", "None")
    try:
        raw = json.loads(body)
    except UnicodeDecodeError as e:
        raise invalid_body("json_invalid", "body", "JSON decode error", "<dict of 0 items>", str(e.reason)) from e
    except json.JSONDecodeError as e:
        loc = f"body.{e.pos}"
        raise invalid_body("json_invalid", loc, "JSON decode error", "<dict of 0 items>", e.msg) from e
    if not isinstance(raw, dict):
        msg = "Input should be a valid dictionary or object to extract fields from"
        raise invalid_body("model_attributes_type", "body", msg, str(raw)[:50])
    return raw


def _chat_prompt(raw: dict[str, Any]) -> tuple[Sequence[str], int]:
    if "messages" not in raw:
        raise invalid_body("missing", "body.messages", "Field required", f"<dict of {len(raw)} items>")
    messages = raw["messages"]
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        raise invalid_body("list_type", "body.messages", "Input should be a valid list", str(messages)[:50])
    if not messages:
        raise bad_request("Cannot apply chat template to an empty conversation. Provide at least one message.")
    seed = 0
    tokens: list[str] = []
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [content]
        for part in parts:
            text = part.get("text") if isinstance(part, dict) else part
            if isinstance(text, str):
                tokens += text.split()
                seed = crc32(text.encode(), seed)
    return tokens, seed


def _text_prompt(raw: dict[str, Any]) -> tuple[Sequence[str] | Sequence[int], int]:
    prompt = raw.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, str) and prompt:
        return prompt.split(), crc32(prompt.encode())
    if isinstance(prompt, list) and prompt:
        if not all(isinstance(token, int) for token in prompt):
            raise bad_request("This fake serves one prompt per request: a string, or a list of token ids.", "prompt")
        return prompt, crc32(repr(prompt).encode())
    raise bad_request("Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)", "prompt")


def _stream_options(raw: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
    stream = raw.get("stream") is True
    options = raw.get("stream_options")
    if options is not None and not stream:
        message = "Stream options can only be defined when `stream=True`. (parameter=stream_options)"
        raise bad_request(message, "stream_options")
    return stream, options if isinstance(options, dict) else {}


def _logprobs(raw: dict[str, Any], chat: bool) -> int | None:
    """How many alternatives to each token are wanted."""
    wanted = raw.get("logprobs")
    if not chat and wanted is not None:
        raise bad_request("This fake has no logprobs for text completions; chat completions have them.", "logprobs")
    top = _integer(raw, "top_logprobs") or 0
    if top < 0:
        message = f"`top_logprobs` must be a positive value or -1. (parameter=top_logprobs, value={top})"
        raise bad_request(message, "top_logprobs")
    if top and wanted is not True:
        message = "when using `top_logprobs`, `logprobs` must be set to true. (parameter=top_logprobs)"
        raise bad_request(message, "top_logprobs")
    return top if wanted is True else None


def _check_sampling(raw: dict[str, Any]) -> int:
    """Returns how many choices are wanted."""
    n = _integer(raw, "n")
    if n is not None and n < 1:
        raise bad_request(f"n must be at least 1, got {n}.")
    _check_temperature(raw.get("temperature"))
    return n or 1


def _check_temperature(temperature: object) -> None:
    if temperature is None:
        return
    try:
        value = float(str(temperature))
    except (TypeError, ValueError) as e:
        msg = "Input should be a valid number, unable to parse string as a number"
        raise invalid_body("float_parsing", "body.temperature", msg, str(temperature)[:50]) from e
    if value < 0:
        message = f"temperature must be non-negative, got {value}. (parameter=temperature, value={value})"
        raise bad_request(message, "temperature")


def _integer(raw: dict[str, Any], key: str) -> int | None:
    value = raw.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    msg = "Input should be a valid integer, unable to parse string as an integer"
    raise invalid_body("int_parsing", f"body.{key}", msg, str(value)[:50])


def _max_tokens(raw: dict[str, Any], chat: bool, prompt_tokens: int, max_model_len: int) -> int:
    max_tokens = _integer(raw, "max_completion_tokens") if chat else None
    if max_tokens is None:
        max_tokens = _integer(raw, "max_tokens")
    if max_tokens is not None and max_tokens < 1:
        message = f"max_tokens must be at least 1, got {max_tokens}. (parameter=max_tokens, value={max_tokens})"
        raise bad_request(message, "max_tokens")
    if prompt_tokens >= max_model_len:
        raise bad_request(
            f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains "
            f"{prompt_tokens} input tokens, which exceeds this limit even without any output tokens. Please reduce "
            f"the length of the input prompt. (parameter=input_tokens, value={prompt_tokens})",
            "input_tokens",
        )
    room = max_model_len - prompt_tokens
    if max_tokens is None:
        return room if chat else min(16, room)
    if max_tokens > max_model_len:
        raise bad_request(
            f"max_tokens={max_tokens} cannot be greater than max_model_len={max_model_len}. Please request fewer "
            f"output tokens. (parameter=max_tokens, value={max_tokens})",
            "max_tokens",
        )
    if max_tokens > room:
        raise bad_request(
            f"This model's maximum context length is {max_model_len} tokens. However, you requested {max_tokens} "
            f"output tokens and your prompt contains {prompt_tokens} input tokens. Please reduce the length of the "
            f"input prompt or the number of requested output tokens. (parameter=input_tokens, value={prompt_tokens})",
            "input_tokens",
        )
    return max_tokens


def _stop(raw: dict[str, Any], max_tokens: int, seed: int) -> tuple[int, str]:
    if raw.get("ignore_eos") is True:
        return max_tokens, "length"
    min_tokens = _integer(raw, "min_tokens") or 0
    if min_tokens > max_tokens:
        message = f"min_tokens must be less than or equal to max_tokens={max_tokens}, got {min_tokens}."
        raise bad_request(message, "min_tokens")
    bias = raw.get("logit_bias")
    if isinstance(bias, dict) and isinstance(forced := bias.get(EOS_TOKEN), int | float) and forced >= EOS_BIAS:
        return (min_tokens + 1, "stop") if min_tokens < max_tokens else (max_tokens, "length")
    natural = round(Random(seed).lognormvariate(0, NATURAL_SIGMA) * NATURAL_MEDIAN_TOKENS)
    eos_at = max(2, natural, min_tokens + 1)
    return (eos_at, "stop") if eos_at <= max_tokens else (max_tokens, "length")
