"""How a request ended: the facts of one exchange to exactly one outcome and its reason (design, 4.3). Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from harness.history.tables import Outcome
from harness.run.load.stream import Meaning


class Ending(enum.Enum):
    """How the exchange ended on the wire, whatever was said before."""

    COMPLETE = "the HTTP message came whole"
    REFUSED = "the connection was refused"
    CONNECT_TIMEOUT = "no connection in time"
    CLOSED = "the connection was closed"
    RESET = "the connection was reset"
    NO_TOKEN = "no token in time"
    STALLED = "the stream fell silent"
    DEADLINE = "not done by the deadline"
    BAD_HTTP = "not HTTP"
    STOPPED = "the load was stopped"
    HUNG_UP = "the client hung up by plan"
    FAILED = "unforeseen"


@dataclass(slots=True)
class Facts:
    """What was seen of one exchange. Filled while it runs; ``ending`` is set once, at its end."""

    max_tokens: int
    ignore_eos: bool = True
    stream: bool = True
    """Whether the answer was asked for as a stream."""
    status: int | None = None
    event_stream: bool = False
    """Whether the answer's content type is text/event-stream."""
    chunks: int = 0
    finish_reason: str | None = None
    done: bool = False
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    error: str | None = None
    bad: str | None = None
    body: str = ""
    """The start of an answer that is no stream: the server's own words about an error."""
    ending: Ending | None = None
    detail: str = ""

    def take(self, meaning: Meaning) -> None:
        """Adds one event. The first error, the first bad event and the last usage count."""
        self.done = self.done or meaning.done
        self.chunks += meaning.content
        if meaning.finish_reason is not None:
            self.finish_reason = meaning.finish_reason
        if meaning.usage is not None:
            self.prompt_tokens = meaning.usage.prompt_tokens
            self.output_tokens = meaning.usage.completion_tokens
        if meaning.error is not None and self.error is None:
            self.error = meaning.error if meaning.error_code is None else f"{meaning.error_code} {meaning.error}"
        if meaning.bad is not None and self.bad is None:
            self.bad = meaning.bad

    @property
    def answered(self) -> bool:
        """Whether the stream said all that a whole answer says."""
        return (self.done or not self.stream) and self.finish_reason is not None and self.output_tokens is not None


Judged = tuple[Outcome, str]

_CONNECT = {Ending.REFUSED: Outcome.CONNECT_REFUSED, Ending.CONNECT_TIMEOUT: Outcome.CONNECT_TIMEOUT}
_OURS = {Ending.STOPPED: Outcome.UNFINISHED, Ending.HUNG_UP: Outcome.ABORTED_BY_CLIENT}
_SILENT = {Ending.NO_TOKEN: Outcome.STALLED, Ending.STALLED: Outcome.STALLED, Ending.DEADLINE: Outcome.DEADLINE}
_CUT = frozenset({Ending.CLOSED, Ending.RESET})


def judge_outcome(facts: Facts) -> Judged:
    """The one outcome of an exchange that has ended.

    What the server itself said (an error, ``abort``) counts before how the connection ended: it is the cause.
    """
    ending = facts.ending
    if ending is None:
        return Outcome.PROTOCOL_ERROR, "judged before it ended"
    if ending in _CONNECT:
        return _CONNECT[ending], _words(facts)
    if ending in _OURS:
        return _OURS[ending], _words(facts)
    if facts.status is None:
        if ending in _CUT:
            return Outcome.RESET_BEFORE_HEADERS, _words(facts)
        return _SILENT.get(ending, Outcome.PROTOCOL_ERROR), _words(facts)
    if facts.status != 200:
        return _by_status(facts, facts.status)
    return _by_stream(facts)


def _by_status(facts: Facts, status: int) -> Judged:
    said = f"{status} {facts.body}".strip()
    if status == 429:
        return Outcome.HTTP_429, said
    if 400 <= status < 500:
        return Outcome.HTTP_4XX, said
    if 500 <= status < 600:
        return Outcome.HTTP_5XX, said
    return Outcome.PROTOCOL_ERROR, f"status {said}, but 200 was expected"


def _by_stream(facts: Facts) -> Judged:
    assert facts.ending is not None
    if facts.error is not None:
        return Outcome.ERROR_IN_STREAM, facts.error
    if facts.finish_reason == "abort":
        return Outcome.ABORTED, f"finish_reason abort after {facts.chunks} chunks"
    if facts.bad is not None:
        return Outcome.PROTOCOL_ERROR, facts.bad
    if facts.ending in _CUT:
        return Outcome.RESET_MID_STREAM, f"{_words(facts)} {_how_far(facts)}"
    if facts.ending in _SILENT:
        return _SILENT[facts.ending], f"{_words(facts)} {_how_far(facts)}"
    if facts.ending is not Ending.COMPLETE:
        return Outcome.PROTOCOL_ERROR, _words(facts)
    if facts.event_stream and not facts.stream:
        return Outcome.PROTOCOL_ERROR, "200 with an event stream, though none was asked for"
    if not facts.event_stream and facts.stream:
        return Outcome.PROTOCOL_ERROR, f"200 without an event stream: {facts.body}".rstrip(": ")
    return _whole_message(facts)


def _whole_message(facts: Facts) -> Judged:
    """The HTTP message ended properly; whether the answer in it is whole is another matter."""
    missing = [
        name
        for name, is_there in (
            ("finish_reason", facts.finish_reason is not None),
            ("[DONE]", facts.done or not facts.stream),
        )
        if not is_there
    ]
    if missing:
        return Outcome.TRUNCATED, f"a clean end without {' and '.join(missing)} {_how_far(facts)}"
    if facts.finish_reason not in ("stop", "length"):
        return Outcome.PROTOCOL_ERROR, f"finish_reason {facts.finish_reason!r}"
    if facts.output_tokens is None:
        return Outcome.PROTOCOL_ERROR, "no usage, though the request asked for it"
    exact = facts.ignore_eos or facts.finish_reason == "length"
    if exact and facts.output_tokens < facts.max_tokens:
        return Outcome.TRUNCATED, (
            f"usage says {facts.output_tokens} of {facts.max_tokens} tokens, with finish_reason {facts.finish_reason}"
        )
    if facts.output_tokens > facts.max_tokens:
        return Outcome.PROTOCOL_ERROR, f"usage says {facts.output_tokens} tokens, max_tokens was {facts.max_tokens}"
    return Outcome.OK, ""


def _words(facts: Facts) -> str:
    assert facts.ending is not None
    return f"{facts.ending.value}: {facts.detail}" if facts.detail else facts.ending.value


def _how_far(facts: Facts) -> str:
    if facts.answered:
        return "after [DONE], before the message's end"
    if not facts.stream:
        return "before the answer was whole"
    return f"after {facts.chunks} of at most {facts.max_tokens} chunks"
