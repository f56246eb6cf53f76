"""What two servers may say differently without disagreeing: ids, times, texts, and the numbers that hang on a text."""

from __future__ import annotations

import re
from dataclasses import dataclass

MASKS: tuple[tuple[str, str], ...] = (
    (r'"id":"(chatcmpl|cmpl)-[0-9a-f]{16}"', r'"id":"\1-ID"'),
    (r'"model":"(m|tiny)"', '"model":"M"'),
    (r'"created":\d+', '"created":0'),
    (r'"system_fingerprint":"vllm-0\.32\.0-[0-9a-f]{8}"', '"system_fingerprint":"vllm-0.32.0-X"'),
    (r'"(content|text|token)":"(?:[^"\\]|\\.)+"', r'"\1":"TEXT"'),
    # A real tokenizer has tokens without text, where a character is not complete yet.
    (r'"content":""(\},"logprobs":\{)', r'"content":"TEXT"\1'),
    (r'"token":""', '"token":"TEXT"'),
    (r'"bytes":\[[\d,]*\]', '"bytes":[0]'),
    (r'"logprob":-\d+\.\d+', '"logprob":-1.0'),
    (r'"prompt_tokens":\d+,"total_tokens":\d+', '"prompt_tokens":P,"total_tokens":T'),
)
CHANGING = frozenset(("date", "content-length", "x-request-id"))
"""Headers whose value is time, an id, or the length of a text; that a length is right, the reader has seen."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer as it may be compared."""

    status: str
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[str, ...]
    """Of a body in chunks each one, the empty last one included; else the body alone."""


def mask(text: str) -> str:
    for pattern, instead in MASKS:
        text = re.sub(pattern, instead, text)
    return text


def shown(raw: bytes) -> Shown:
    """Raises ValueError where the framing of the answer is not what its headers promise."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    status = first.split(" ", 1)[1].upper()
    pairs = [(name.lower(), value) for name, _, value in (line.partition(": ") for line in lines)]
    headers = dict(pairs)
    if headers.get("transfer-encoding") == "chunked":
        chunks = split_chunks(body)
    else:
        if len(body) != int(headers.get("content-length", "0")):
            raise ValueError(f"{headers.get('content-length')} bytes were promised, {len(body)} came")
        chunks = [body.decode()]
    kept = sorted((name, "*" if name in CHANGING else value) for name, value in pairs)
    return Shown(status, tuple(kept), tuple(mask(chunk) for chunk in chunks))


def split_chunks(body: bytes) -> list[str]:
    chunks: list[str] = []
    while body:
        size_text, _, rest = body.partition(b"\r\n")
        size = int(size_text, 16)
        if rest[size : size + 2] != b"\r\n":
            raise ValueError(f"a chunk of {size} bytes does not end where it should: {rest[: size + 8]!r}")
        chunks.append(rest[:size].decode())
        body = rest[size + 2 :]
    if not chunks or chunks[-1]:
        raise ValueError("the last chunk is missing")
    return chunks
