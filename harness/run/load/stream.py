"""What a chat stream says: bytes to server-sent events, events to what each one means. Pure.

Events follow the HTML standard's rules: any of LF, CRLF and CR ends a line, an empty line ends an event, comments and
unknown fields are ignored, and an event that the end of the stream cuts short is none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

DONE = b"[DONE]"


class SseEvent(NamedTuple):
    data: bytes
    name: bytes = b""


class EventReader:
    """Feed it bytes as they come, however they are cut; it returns the events that they complete."""

    __slots__ = ("_after_cr", "_data", "_name", "_tail")

    def __init__(self) -> None:
        self._tail = b""
        self._data: list[bytes] = []
        self._name = b""
        self._after_cr = False

    @property
    def pending(self) -> bytes:
        """What came after the last whole event; text behind a cut."""
        return b"\n".join([*self._data, self._tail])

    @property
    def at_rest(self) -> bool:
        """Whether everything that came belonged to whole events."""
        return not (self._tail or self._data or self._name or self._after_cr)

    def feed(self, chunk: bytes) -> list[SseEvent]:
        if not chunk:
            return []
        if self._is_one_event(chunk):
            return [SseEvent(chunk[6:-2])]
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]  # the second half of a CRLF whose first half ended the last chunk's line
        self._after_cr = False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = (self._tail + chunk).split(b"\n")
        self._tail = lines.pop()
        events: list[SseEvent] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if self._data:
                    events.append(
                        SseEvent(self._data[0] if len(self._data) == 1 else b"\n".join(self._data), self._name)
                    )
                    self._data = []
                self._name = b""
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
            elif line == b"data":
                self._data.append(b"")
        return events

    def _is_one_event(self, chunk: bytes) -> bool:
        """One token, one event, one read: so common that it has a way of its own, with the same result."""
        return (
            chunk.startswith(b"data: ")
            and chunk.find(b"\n") == len(chunk) - 2
            and chunk.endswith(b"\n")
            and self.at_rest
            and b"\r" not in chunk
        )


@dataclass(frozen=True, slots=True)
class Usage:
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one event says; several things at once are possible."""

    done: bool = False
    content: bool = False
    """Carries text (or reasoning, or a tool call): one or more tokens. The role event and empty deltas do not."""
    finish_reason: str | None = None
    usage: Usage | None = None
    error: str | None = None
    error_code: int | None = None
    bad: str | None = None
    """Why the event is no answer of this protocol."""


_DONE = Meaning(done=True)
_NOTHING = Meaning()
TOKEN = Meaning(content=True)
"""An event that carries text and nothing else; always this very object, so that ``is`` tells it."""
_TEXT_KEYS = ("content", "reasoning_content", "reasoning", "tool_calls")


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    text: str | None = None
    finish_reason: str | None = None


class _Chunk(msgspec.Struct, gc=False):
    """What most events are; whatever does not fit, or says more, is looked at in full."""

    choices: list[_Choice]
    object: str | None = None
    usage: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode


def interpret(event: SseEvent) -> Meaning:
    """The meaning of one event of a chat (or plain) completion stream."""
    data, name = event
    if data == DONE:
        return _DONE
    if not name:
        try:
            chunk = _decode(data)
        except (msgspec.MsgspecError, RecursionError):
            return _interpret_any(event)
        if len(chunk.choices) == 1 and chunk.usage is None and chunk.error is None and chunk.object != "error":
            choice = chunk.choices[0]
            if choice.finish_reason is None and ((choice.delta is not None and choice.delta.content) or choice.text):
                return TOKEN
    return _interpret_any(event)


def text_of(data: bytes) -> str | None:
    """The text of an event with one choice, reasoning and tool calls aside; None where it is anything else."""
    try:
        choices = _decode(data).choices
    except (msgspec.MsgspecError, RecursionError):
        return None
    if len(choices) != 1:
        return None
    delta = choices[0].delta
    return (delta.content if delta is not None else None) or choices[0].text


def _interpret_any(event: SseEvent) -> Meaning:
    try:
        body: Any = json.loads(event.data)
    except (ValueError, RecursionError):  # one event with ten thousand brackets must not end the load
        return Meaning(bad=f"not JSON: {_clip(event.data.decode('utf-8', 'replace'))}")
    if not isinstance(body, dict):
        return Meaning(bad=f"not an object: {_clip(str(body))}")
    if body.get("error") is not None or event.name == b"error" or body.get("object") == "error":
        return _error(body.get("error") or body)
    choices = body.get("choices")
    usage = _usage(body.get("usage"))
    if not isinstance(choices, list):
        return Meaning(usage=usage) if usage else Meaning(bad=f"no choices: {_clip(str(body))}")
    if not choices:
        return Meaning(usage=usage)
    choice = choices[0]
    if not isinstance(choice, dict):
        return Meaning(bad=f"a choice that is no object: {_clip(str(choice))}")
    delta = choice.get("delta")
    content = bool(choice.get("text")) or (isinstance(delta, dict) and any(delta.get(key) for key in _TEXT_KEYS))
    finish = choice.get("finish_reason")
    if finish is None and usage is None:
        return TOKEN if content else _NOTHING
    return Meaning(content=content, finish_reason=None if finish is None else str(finish), usage=usage)


def interpret_whole(body: bytes) -> Meaning:
    """The meaning of an answer in one piece. It has no ``[DONE]`` and no chunks."""
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        return Meaning(bad=f"not JSON: {_clip(body.decode('utf-8', 'replace'))}")
    if not isinstance(answer, dict):
        return Meaning(bad=f"not an object: {_clip(str(answer))}")
    if answer.get("error") is not None or answer.get("object") == "error":
        return _error(answer.get("error") or answer)
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return Meaning(bad=f"no choices: {_clip(str(answer))}")
    finish = choices[0].get("finish_reason")
    return Meaning(finish_reason=None if finish is None else str(finish), usage=_usage(answer.get("usage")))


def _usage(raw: Any) -> Usage | None:
    if not isinstance(raw, dict):
        return None
    prompt, completion = raw.get("prompt_tokens"), raw.get("completion_tokens")
    if not isinstance(prompt, int) or not isinstance(completion, int):
        return None
    return Usage(prompt, completion)


def _error(raw: Any) -> Meaning:
    if not isinstance(raw, dict):
        return Meaning(error=_clip(str(raw)))
    code = raw.get("code")
    kind, message = raw.get("type"), raw.get("message")
    text = ": ".join(str(part) for part in (kind, message) if part) or _clip(str(raw))
    return Meaning(error=_clip(text), error_code=code if isinstance(code, int) else None)


def _clip(text: str, length: int = 200) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
