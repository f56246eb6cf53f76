from __future__ import annotations

import json

import pytest

from harness.run.load.stream import EventReader, Meaning, SseEvent, Usage, interpret, interpret_whole, text_of

STREAM = (
    b": keep-alive\n\n"
    b'data: {"text":"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\x80"}\n\n'
    b"id: 7\nretry: 10\nevent: error\ndata: two\ndata:lines\ndata\n\n"
    b"data: crlf\r\n\r\n"
    b"data: cr\r\r"
    b"data:  one space is kept\n\n"
    b"event: nothing\n\n"
    b"data: [DONE]\n\n"
    b"data: cut sho"
)
EVENTS = [
    SseEvent('{"text":"café € 🚀"}'.encode()),
    SseEvent(b"two\nlines\n", b"error"),
    SseEvent(b"crlf"),
    SseEvent(b"cr"),
    SseEvent(b" one space is kept"),
    SseEvent(b"[DONE]"),
]


def read(*chunks: bytes) -> tuple[list[SseEvent], bytes]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader.feed(chunk)], reader.pending


def test_several_events_in_one_read() -> None:
    assert read(STREAM) == (EVENTS, b"data: cut sho")


def test_a_stream_cut_anywhere_reads_the_same() -> None:
    for at in range(len(STREAM) + 1):
        assert read(STREAM[:at], STREAM[at:])[0] == EVENTS, f"cut at {at}"


def test_byte_by_byte() -> None:
    assert read(*(STREAM[i : i + 1] for i in range(len(STREAM))))[0] == EVENTS


def test_an_empty_read_changes_nothing() -> None:
    assert read(b"data: a\r", b"", b"\n\r\n")[0] == [SseEvent(b"a")]


def chunk(finish: str | None = None, **delta: object) -> dict[str, object]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


USAGE = {"prompt_tokens": 7, "total_tokens": 12, "completion_tokens": 5}
ERROR = {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "param": None, "code": 500}


@pytest.mark.parametrize(
    "body, meaning",
    [
        pytest.param(chunk(role="assistant", content=""), Meaning(), id="role"),
        pytest.param(chunk(content=""), Meaning(), id="half-a-character"),
        pytest.param(chunk(content="x"), Meaning(content=True), id="content"),
        pytest.param(chunk(content=" "), Meaning(content=True), id="a-space-is-content"),
        pytest.param(chunk(reasoning_content="x"), Meaning(content=True), id="reasoning"),
        pytest.param(chunk(tool_calls=[{"index": 0}]), Meaning(content=True), id="tool-call"),
        pytest.param(chunk("length", content="x"), Meaning(content=True, finish_reason="length"), id="last-token"),
        pytest.param(chunk("stop"), Meaning(finish_reason="stop"), id="finish-alone"),
        pytest.param(chunk("abort", content="x"), Meaning(content=True, finish_reason="abort"), id="abort"),
        pytest.param({"choices": [], "usage": USAGE}, Meaning(usage=Usage(7, 5)), id="usage"),
        pytest.param({"usage": USAGE}, Meaning(usage=Usage(7, 5)), id="usage-without-choices"),
        pytest.param({"choices": []}, Meaning(), id="nothing"),
        pytest.param(
            chunk(content="x") | {"usage": USAGE}, Meaning(content=True, usage=Usage(7, 5)), id="continuous-usage"
        ),
        pytest.param(chunk(content="x") | {"usage": None}, Meaning(content=True), id="null-usage"),
        pytest.param(
            {"error": ERROR},
            Meaning(error="InternalServerError: EngineCore encountered an issue.", error_code=500),
            id="error",
        ),
        pytest.param({"error": "out of memory"}, Meaning(error="out of memory"), id="error-text"),
        pytest.param({"object": "error", "message": "gone"}, Meaning(error="gone"), id="old-error"),
        pytest.param({"foo": 1}, Meaning(bad="no choices: {'foo': 1}"), id="no-choices"),
        pytest.param({"choices": ["x"]}, Meaning(bad="a choice that is no object: x"), id="choice-is-text"),
        pytest.param([1], Meaning(bad="not an object: [1]"), id="a-list"),
    ],
)
def test_what_an_event_means(body: object, meaning: Meaning) -> None:
    assert interpret(SseEvent(json.dumps(body).encode())) == meaning


@pytest.mark.parametrize(
    "event, meaning",
    [
        (SseEvent(b"[DONE]"), Meaning(done=True)),
        (SseEvent(b"{oops"), Meaning(bad="not JSON: {oops")),
        (SseEvent(b'{"a":"\xff"}'), Meaning(bad='not JSON: {"a":"\ufffd"}')),
        (SseEvent(b'{"detail":"down"}', b"error"), Meaning(error="{'detail': 'down'}")),
    ],
)
def test_what_an_event_means_that_is_not_json_of_ours(event: SseEvent, meaning: Meaning) -> None:
    assert interpret(event) == meaning


@pytest.mark.parametrize("name", [b"", b"error"])
@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"choices":' * 100_000, b'{"choices":[{"delta":' + b"[" * 50_000])
def test_brackets_without_end_are_only_no_json(text: bytes, name: bytes) -> None:
    """A server that says so must not end the one reader of all streams."""
    meaning = interpret(SseEvent(text, name))
    assert (meaning.bad or "").startswith("not JSON: ") and text_of(text) is None
    assert (interpret_whole(text).bad or "").startswith("not JSON: ")
