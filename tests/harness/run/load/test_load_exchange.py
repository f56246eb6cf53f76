"""A response's bytes to facts and times, however the reads cut them."""

from __future__ import annotations

import httptools
import pytest
from sse_server import DONE, ROLE, token, usage

from harness.history.tables import Outcome
from harness.run.load.exchange import Answer, Exchange
from harness.run.load.outcome import Ending, Facts, judge_outcome
from harness.run.load.stream import Meaning


def chunked(*events: bytes) -> bytes:
    return b"".join(f"{len(e):x}\r\n".encode() + e + b"\r\n" for e in events)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nx-serving-pod: llm-0\r\nx-serving-node: n1\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
TEXT = "né 🚀"
LAST = token(TEXT, "length")
BODY = chunked(ROLE, token(TEXT)[:-9], token(TEXT)[-9:] + token(TEXT), b": keep-alive\n\n", LAST, usage(3) + DONE)
RESPONSE = CHUNKED + BODY + b"0\r\n\r\n"


def feed(*reads: bytes, tokens: int = 3) -> tuple[Exchange, Answer]:
    exchange = Exchange(1, Facts(tokens), sent_ns=0)
    answer = Answer(exchange)
    for number, data in enumerate(reads, start=1):
        answer.feed(data, number)
    ending = Ending.COMPLETE if answer.complete or answer.ends_with_connection else Ending.CLOSED
    exchange.finish(ending, len(reads))
    return exchange, answer


def test_a_response_cut_anywhere_is_the_same_answer() -> None:
    for at in range(1, len(RESPONSE)):
        exchange, answer = feed(RESPONSE[:at], RESPONSE[at:])
        assert judge_outcome(exchange.facts) == (Outcome.OK, ""), f"cut at {at}"
        assert (exchange.facts.chunks, exchange.facts.output_tokens) == (3, 3), f"cut at {at}"
        assert (exchange.pod, exchange.node, exchange.received_bytes) == ("llm-0", "n1", len(RESPONSE))
        assert answer.keep_alive


def test_a_response_that_ends_anywhere_is_cut() -> None:
    for at in range(len(CHUNKED), len(RESPONSE)):
        exchange, _ = feed(RESPONSE[:at])
        assert judge_outcome(exchange.facts)[0] is Outcome.RESET_MID_STREAM, f"ended at {at}"


def test_times_are_those_of_the_reads_that_completed_the_events() -> None:
    first = token()
    exchange, _ = feed(
        CHUNKED, chunked(ROLE), chunked(first[:5]), chunked(first[5:]), chunked(token(), token("", "length"))
    )
    assert (exchange.headers_ns, exchange.first_chunk_ns, exchange.first_token_ns) == (1, 2, 4)
    assert (exchange.last_token_ns, exchange.last_event_ns, exchange.gap_max_ns) == (5, 5, 1)


def test_comments_are_no_events() -> None:
    exchange, _ = feed(CHUNKED, chunked(b": keep-alive\n\n"))
    assert (exchange.first_chunk_ns, exchange.last_event_ns) == (None, None)


def test_a_token_without_text_is_dated_by_the_event_that_finishes() -> None:
    exchange, _ = feed(
        CHUNKED, chunked(ROLE), chunked(token("", "length")), chunked(usage(1), DONE) + b"0\r\n\r\n", tokens=1
    )
    assert judge_outcome(exchange.facts)[0] is Outcome.OK
    assert (exchange.first_token_ns, exchange.last_token_ns, exchange.gap_max_ns, exchange.facts.chunks) == (
        3,
        3,
        None,
        0,
    )


def test_a_length_and_the_connection_s_end_frame_a_body_too() -> None:
    body = ROLE + token() + token() + LAST + usage(3) + DONE
    length = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    exchange, answer = feed(length)
    assert judge_outcome(exchange.facts)[0] is Outcome.OK and answer.keep_alive
    assert judge_outcome(feed(length[:-1])[0].facts)[0] is Outcome.RESET_MID_STREAM
    exchange, answer = feed(HEAD + b"\r\n" + body)
    assert judge_outcome(exchange.facts)[0] is Outcome.OK and not answer.keep_alive
    assert judge_outcome(feed(HEAD + b"\r\n" + body[:-20])[0].facts)[0] is Outcome.TRUNCATED


def test_an_interim_answer_is_not_the_answer() -> None:
    exchange, answer = feed(b"HTTP/1.1 100 Continue\r\n\r\n" + RESPONSE)
    assert answer.complete and judge_outcome(exchange.facts)[0] is Outcome.OK


def test_what_is_not_http_is_refused() -> None:
    with pytest.raises(httptools.HttpParserError):
        feed(b"SSH-2.0-OpenSSH_9.2\r\n")


def test_the_first_ending_counts() -> None:
    exchange, _ = feed(RESPONSE)
    exchange.finish(Ending.STOPPED, 99)
    exchange.take(Meaning(), 99)
    assert (exchange.facts.ending, exchange.end_ns) == (Ending.COMPLETE, 1)
