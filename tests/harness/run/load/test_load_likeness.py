"""What is told by its likeness is told as the parsers would have told it, whatever comes and however it is cut."""

from __future__ import annotations

import itertools
import json
from random import Random

import httptools
import pytest

from harness.clock import NS_PER_MS
from harness.run.load.exchange import Answer, Exchange
from harness.run.load.likeness import Likeness
from harness.run.load.outcome import Facts

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nx-serving-pod: llm-0\r\nTransfer-Encoding: chunked\r\n\r\n"
)
TEXTS = (" the", "word ", "né", " 漢字", "🚀", "\n", '"', "\\", "\t\x07", "}]", '"},', "data: ", "\r\n", "x" * 300)


def chunk(*events: bytes) -> bytes:
    body = b"".join(events)
    return b"%x\r\n%s\r\n" % (len(body), body)


def event(
    text: str, *, finish: str | None = None, spaced: bool = False, text_key: bool = False, **more: object
) -> bytes:
    said: dict[str, object] = {"text": text} if text_key else {"delta": {"content": text}}
    body = {"id": "cmpl-7", "choices": [{"index": 0, **said, "logprobs": None, "finish_reason": finish, **more}]}
    separators = (", ", ": ") if spaced else (",", ":")
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=separators).encode() + b"\n\n"


def stream(rng: Random) -> list[bytes]:
    """Writes of a server: tokens most of all, and now and then something else."""
    likes = {"spaced": rng.random() < 0.3, "text_key": rng.random() < 0.3}
    others = (
        lambda: chunk(b": keep-alive\n\n"),
        lambda: chunk(event("", **likes)),
        lambda: chunk(event(" end", finish=rng.choice(["stop", "length", "abort"]), **likes)),
        lambda: chunk(event(" the", logprobs={"content": "text"}, **likes)),
        lambda: chunk(event("a", **likes), event("b", **likes)),
        lambda: chunk(event(" the", **likes).replace(b"\n", b"\r\n")),
        lambda: chunk(b"event: error\n" + event(" the", **likes)),
        lambda: chunk(b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}\n\n'),
        lambda: chunk(b'data: {"error":{"message":"gone","code":500}}\n\n'),
        lambda: chunk(b"data: [DONE]\n\n"),
        lambda: chunk(event(" the", **likes)).replace(b"\r\n", b";x=1\r\n", 1),
        lambda: b"0" + chunk(event(" the", **likes)),
        lambda: b"0\r\n\r\n",
    )
    texts = TEXTS if rng.random() < 0.5 else TEXTS[:5]
    ordinary = [chunk(event(rng.choice(texts), **likes)) for _ in range(rng.randrange(2, 30))]
    return [rng.choice(others)() if rng.random() < 0.1 else one for one in ordinary]


def cut(data: bytes, rng: Random) -> list[bytes]:
    """Reads: sometimes whole writes together, sometimes the middle of one."""
    places = sorted({0, len(data), *(rng.randrange(len(data)) for _ in range(rng.randrange(4)))})
    return [data[a:b] for a, b in itertools.pairwise(places)]


def mutated(data: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(data))
    return rng.choice((data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :], data[:at] + data[at + 1 :]))


def told(reads: list[bytes], *, byte_by_byte: bool) -> tuple[object, ...]:
    """All that is known after these reads. Byte by byte, nothing can be told by its likeness."""
    exchange = Exchange(1, Facts(9), sent_ns=0)
    answer = Answer(exchange)
    said = ""
    for number, data in enumerate(reads, start=1):
        if answer.complete:
            break  # the connection would now belong to another exchange
        try:
            for piece in [data[i : i + 1] for i in range(len(data))] if byte_by_byte else [data]:
                answer.feed(piece, number * NS_PER_MS)
        except httptools.HttpParserError:
            said = "not HTTP"
            break
    exchange.received_bytes = 0  # of a read that is not HTTP, or goes past the end, the single bytes are fewer
    return exchange, answer.complete, answer.keep_alive, said


@pytest.mark.parametrize("seed", range(200))
def test_as_the_parsers_would_have_told_it(seed: int) -> None:
    rng = Random(seed)
    writes = [HEAD, *stream(rng)]
    if rng.random() < 0.5:
        writes[at] = mutated(writes[at := rng.randrange(1, len(writes))], rng)
    reads: list[bytes] = []
    for write in writes:
        if reads and rng.random() < 0.15:
            reads[-1] += write
        else:
            reads.append(write)
    reads = [piece for read in reads for piece in (cut(read, rng) if rng.random() < 0.15 else [read])]
    assert told(reads, byte_by_byte=False) == told(reads, byte_by_byte=True), reads


def test_what_looks_like_a_chunk_within_another_is_none() -> None:
    inner = chunk(event("b"))
    first, _, rest = chunk(event("a"), inner, event("c")).partition(inner)
    reads = [HEAD, chunk(event("the")), first, inner, rest, chunk(b"data: [DONE]\n\n"), b"0\r\n\r\n"]
    as_told = told(reads, byte_by_byte=False)
    assert as_told == told(reads, byte_by_byte=True)
    assert as_told[1:] == (True, True, "")


def test_tokens_are_told_without_a_parser() -> None:
    exchange = Exchange(1, Facts(9), sent_ns=0)
    answer = Answer(exchange)
    assert not answer.feed(HEAD + chunk(event(" the")), 1)
    for number, text in enumerate((" the", "né", " 漢字", "\n", '"'), start=2):
        assert answer.feed(chunk(event(text)), number), text
    assert answer.feed(chunk(event("a")) + chunk(event("bc")), 9)
    assert (exchange.facts.chunks, exchange.first_token_ns, exchange.last_token_ns, exchange.gap_max_ns) == (8, 1, 9, 3)


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(chunk(event("")), id="no-text"),
        pytest.param(chunk(event("a", finish="length")), id="the-last"),
        pytest.param(chunk(event("a", more=1)), id="another-shape"),
        pytest.param(chunk(event("a")).replace(b'"a"', b'"\x01"'), id="a-control-character"),
        pytest.param(chunk(event("a")).replace(b'"a"', b'"\xff"'), id="not-utf-8"),
        pytest.param(chunk(event("a")).replace(b'"a"', b'"\\"'), id="an-open-string"),
        pytest.param(b"0" + chunk(event("a")), id="another-size"),
        pytest.param(chunk(event("a"))[:-2] + b"\n\r", id="another-frame"),
        pytest.param(chunk(event("a")) + b"0\r\n\r\n", id="and-more"),
        pytest.param(chunk(event("a")) + chunk(event("b"))[:-1], id="and-not-all"),
        pytest.param(chunk(event("x" * 5000)), id="a-long-one"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_unlike(read: bytes) -> None:
    likeness = Likeness.learnt_from(chunk(event("the")))
    assert likeness is not None
    assert likeness.tokens_in(chunk(event("a"))) == 1
    assert likeness.tokens_in(read) == 0


@pytest.mark.parametrize(
    "taught",
    [
        pytest.param(chunk(event("")), id="no-text"),
        pytest.param(chunk(event("a", finish="stop")), id="the-last"),
        pytest.param(event("a"), id="no-chunk"),
        pytest.param(chunk(b'data: {"choices":[{"delta":{"reasoning":"hm"}}]}\n\n'), id="no-known-place"),
        pytest.param(chunk(b'data: {"choices":[{"delta":{"content":"a"}},{"text":"b"}]}\n\n'), id="two-choices"),
        pytest.param(chunk(b'data: {"text":"x","choices":[{"delta":{"reasoning":"hm"}}]}\n\n'), id="elsewhere"),
    ],
)
def test_what_teaches_nothing(taught: bytes) -> None:
    assert Likeness.learnt_from(taught) is None


def test_the_text_is_found_where_it_is() -> None:
    """Another key of the same name stands before it."""
    likeness = Likeness.learnt_from(chunk(b'data: {"text":"x","choices":[{"index":0,"text":"a"}]}\n\n'))
    assert likeness is not None
    assert likeness.tokens_in(chunk(b'data: {"text":"x","choices":[{"index":0,"text":"bc"}]}\n\n')) == 1
    assert likeness.tokens_in(chunk(b'data: {"text":"y","choices":[{"index":0,"text":"bc"}]}\n\n')) == 0
