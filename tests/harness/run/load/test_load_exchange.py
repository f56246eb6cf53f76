"""A response's bytes to facts and times, however the reads cut them."""

from __future__ import annotations

import httptools
import pytest
from sse_server import DONE, ROLE, token, usage, whole_answer

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


# --- answers in one piece --------------------------------------------------------------------------------------------

JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nx-serving-pod: llm-0\r\n"


def feed_whole(*reads: bytes, tokens: int = 3) -> tuple[Exchange, Answer]:
    exchange = Exchange(1, Facts(tokens, stream=False), sent_ns=0)
    answer = Answer(exchange)
    for number, data in enumerate(reads, start=1):
        answer.feed(data, number)
    exchange.finish(Ending.COMPLETE if answer.complete else answer.connection_ended(), len(reads))
    return exchange, answer


def with_length(body: bytes) -> bytes:
    return JSON_HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_a_whole_answer_cut_anywhere_is_the_same_answer() -> None:
    response = with_length(whole_answer(3))
    for at in range(1, len(response)):
        exchange, answer = feed_whole(response[:at], response[at:])
        assert judge_outcome(exchange.facts) == (Outcome.OK, ""), f"cut at {at}"
        assert (exchange.facts.output_tokens, exchange.facts.prompt_tokens, exchange.facts.chunks) == (3, 7, 0)
        assert (exchange.pod, exchange.first_token_ns, answer.keep_alive) == ("llm-0", None, True)


def test_a_whole_answer_may_end_with_the_connection() -> None:
    exchange, _ = feed_whole(JSON_HEAD + b"\r\n" + whole_answer(3))
    assert judge_outcome(exchange.facts) == (Outcome.OK, "")
    exchange, _ = feed_whole(JSON_HEAD + b"\r\n" + whole_answer(3)[:-9])
    assert judge_outcome(exchange.facts)[0] is Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize(
    "response, outcome, says",
    [
        (with_length(whole_answer(3, "stop")), "ok", ""),
        (with_length(whole_answer(2)), "truncated", "usage says 2 of 3"),
        (with_length(whole_answer(4)), "protocol_error", "usage says 4"),
        (with_length(whole_answer(0, "abort")), "aborted", "finish_reason abort"),
        (with_length(b'{"choices": [{"finish_reason": "length"}]}'), "protocol_error", "no usage"),
        (with_length(b'{"choices": [{"finish_reason": null}]}'), "truncated", "without finish_reason"),
        (with_length(b'{"error": {"message": "engine died", "code": 500}}'), "error_in_stream", "500 engine died"),
        (with_length(b'{"choices": []}'), "protocol_error", "no choices"),
        (with_length(b"[1]"), "protocol_error", "not an object"),
        (with_length(b"<html>"), "protocol_error", "not JSON: <html>"),
        (with_length(whole_answer(3))[:-5], "reset_mid_stream", "before the answer was whole"),
        (RESPONSE, "protocol_error", "an event stream, though none was asked for"),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy", "http_5xx", "503 busy"),
    ],
)
def test_a_whole_answer_is_judged_by_the_same_outcomes(response: bytes, outcome: str, says: str) -> None:
    exchange, _ = feed_whole(response)
    judged, reason = judge_outcome(exchange.facts)
    assert judged == outcome
    assert says in reason


# --- hanging up ------------------------------------------------------------------------------------------------------


def test_a_client_hangs_up_after_its_tokens_or_its_time() -> None:
    exchange = Exchange(1, Facts(9), sent_ns=100, hang_up_tokens=2)
    answer = Answer(exchange)
    answer.feed(CHUNKED + chunked(ROLE, token()), 200)
    assert exchange.hangs_up(10**12) is None
    answer.feed(chunked(token(), token()), 300)
    assert exchange.hangs_up(300) == "after 3 chunks"
    patient = Exchange(1, Facts(9), sent_ns=100, hang_up_ns=2_000_000_000)
    assert patient.hangs_up(patient.sent_ns + 1_999_999_999) is None
    assert patient.hangs_up(patient.sent_ns + 2_000_000_000) == "after 2 s"
    assert Exchange(1, Facts(9), sent_ns=100).hangs_up(10**15) is None


def test_what_the_server_said_of_the_end_goes_before_hanging_up() -> None:
    exchange = Exchange(1, Facts(3), sent_ns=0, hang_up_tokens=1)
    answer = Answer(exchange)
    answer.feed(CHUNKED + chunked(ROLE, token(), token("", "abort")), 1)
    assert exchange.hangs_up(1) is None
