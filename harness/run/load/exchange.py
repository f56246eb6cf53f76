"""One exchange: its times, its facts, and the reading of its response. No sockets, so any bytes can be tried on it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import httptools

from harness.clock import NS_PER_S
from harness.run.load.arrival import Arrival
from harness.run.load.likeness import Likeness
from harness.run.load.outcome import Ending, Facts
from harness.run.load.stream import TOKEN, EventReader, Meaning, interpret, interpret_whole

_BODY_KEPT_BYTES = 400
_LESSONS = 8
"""How often a stream's likeness is looked for: a server whose events all differ is not worth more."""


@dataclass(slots=True)
class Exchange:
    """One request and what came of it. Times are history time, None where the thing did not happen (yet)."""

    request_id: int
    facts: Facts
    sent_ns: int
    connected_ns: int | None = None
    headers_ns: int | None = None
    first_chunk_ns: int | None = None
    first_token_ns: int | None = None
    last_token_ns: int | None = None
    last_event_ns: int | None = None
    end_ns: int | None = None
    gap_max_ns: int | None = None
    received_bytes: int = 0
    pod: str | None = None
    node: str | None = None
    reused: bool = False
    hang_up_tokens: int = 0
    hang_up_ns: int = 0
    """When the client hangs up by plan: after so many tokens, or so long after the send; 0 for never."""
    attempt: int = 1

    @classmethod
    def of(cls, arrival: Arrival, sent_ns: int) -> Exchange:
        return cls(
            arrival.request_id,
            Facts(max_tokens=arrival.output_tokens, stream=arrival.stream),
            sent_ns,
            hang_up_tokens=arrival.hang_up_tokens,
            hang_up_ns=arrival.hang_up_ns,
        )

    def finish(self, ending: Ending, now_ns: int, detail: str = "") -> None:
        """The first ending counts: what ends an exchange from outside is not overwritten by its own unwinding."""
        if self.facts.ending is None:
            self.facts.ending, self.facts.detail, self.end_ns = ending, detail, now_ns

    @property
    def hang_up_at_ns(self) -> int | None:
        return self.sent_ns + self.hang_up_ns if self.hang_up_ns else None

    @property
    def may_hang_up(self) -> bool:
        return bool(self.hang_up_tokens or self.hang_up_ns)

    @property
    def met_a_closed_connection(self) -> bool:
        """A kept-alive connection that the server had closed, or was closing, when the request came."""
        return self.reused and not self.received_bytes and self.facts.ending in (Ending.CLOSED, Ending.RESET)

    def hangs_up(self, now_ns: int) -> str | None:
        """Why the client hangs up now, or None. What the server has said of the answer's end goes before."""
        if self.facts.finish_reason is not None or self.facts.error is not None:
            return None
        if self.hang_up_tokens and self.facts.chunks >= self.hang_up_tokens:
            return f"after {self.facts.chunks} chunks"
        if self.hang_up_at_ns is not None and now_ns >= self.hang_up_at_ns:
            return f"after {self.hang_up_ns / NS_PER_S:g} s"
        return None

    def take(self, meaning: Meaning, read_ns: int) -> None:
        """One event of the stream, stamped with the read that completed it."""
        if meaning is TOKEN and self.last_token_ns is not None:
            self.take_tokens(1, read_ns)
            return
        self.facts.take(meaning)
        if self.first_chunk_ns is None:
            self.first_chunk_ns = read_ns
        self.last_event_ns = read_ns
        # The last token's text may be empty (half a character, or an end token): its event is the one that finishes.
        silent_token = not meaning.content and meaning.finish_reason in ("stop", "length")
        if not meaning.content and not silent_token:
            return
        if self.first_token_ns is None:
            self.first_token_ns = read_ns
        elif meaning.content and self.last_token_ns is not None:
            self.gap_max_ns = max(self.gap_max_ns or 0, read_ns - self.last_token_ns)
        self.last_token_ns = read_ns

    def take_tokens(self, count: int, read_ns: int) -> None:
        """More events of one read that are ``TOKEN``: as ``take`` would, in fewer steps, for most events are these."""
        assert self.last_token_ns is not None
        self.facts.chunks += count
        gap_ns = read_ns - self.last_token_ns
        if self.gap_max_ns is None or gap_ns > self.gap_max_ns:
            self.gap_max_ns = gap_ns
        self.last_token_ns = self.last_event_ns = read_ns


class Answer:
    """Feeds one HTTP response into its exchange. Raises ``httptools.HttpParserError`` on what is not HTTP."""

    __slots__ = (
        "_between_chunks", "_chunked", "_events", "_exchange", "_framed", "_inflate", "_lessons", "_likeness",
        "_likeness_learnt", "_parser", "_read_ns", "_streams", "_whole", "complete", "keep_alive",
    )  # fmt: skip

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._events = EventReader()
        self._framed = False
        self._inflate: Any = None
        self._chunked = False
        self._between_chunks = False
        self._likeness: Likeness | None = None
        """For the next read; None while the parsers are in the middle of something."""
        self._likeness_learnt: Likeness | None = None
        self._lessons = _LESSONS
        self._streams = False
        self._read_ns = 0
        self._whole = bytearray()
        self.complete = False
        self.keep_alive = False
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes, read_ns: int) -> bool:
        """Whether the read was nothing but more tokens."""
        exchange = self._exchange
        exchange.received_bytes += len(data)
        if (likeness := self._likeness) is not None and (tokens := likeness.tokens_in(data)):
            exchange.take_tokens(tokens, read_ns)  # nobody else need hear of them: the parsers stand as before
            return True
        self._read_ns = read_ns
        self._parser.feed_data(data)
        if self._chunked:
            self._look_for_likeness(data)
        return False

    @property
    def ends_with_connection(self) -> bool:
        """Neither chunked nor with a length: such a body is whole when the server closes the connection."""
        return self._exchange.headers_ns is not None and not self._framed

    def connection_ended(self) -> Ending:
        """What the end of the connection means for the answer."""
        if not self.ends_with_connection:
            return Ending.CLOSED
        self._take_whole()
        return Ending.COMPLETE

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.lower()
        if key == b"content-type":
            self._exchange.facts.event_stream = value.lower().startswith(b"text/event-stream")
        elif key == b"x-serving-pod":
            self._exchange.pod = value.decode("latin-1")
        elif key == b"x-serving-node":
            self._exchange.node = value.decode("latin-1")
        elif key == b"content-encoding" and value.lower() in (b"gzip", b"x-gzip"):
            self._inflate = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        elif key == b"content-encoding" and value.lower() != b"identity":
            self._exchange.facts.bad = f"Content-Encoding {value.decode('latin-1')}, which was not asked for"
        elif key == b"content-length":
            self._framed = True
        elif key == b"transfer-encoding" and b"chunked" in value.lower():
            self._framed = self._chunked = True

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200:
            self._exchange.headers_ns = self._read_ns
            self._exchange.facts.status = status
            self._streams = status == 200 and self._exchange.facts.event_stream

    def on_chunk_header(self) -> None:
        self._between_chunks = False

    def on_chunk_complete(self) -> None:
        self._between_chunks = True

    def on_body(self, body: bytes) -> None:
        if self._inflate is not None:
            body = self._inflated(body)
        if self._streams:
            for event in self._events.feed(body):
                self._exchange.take(interpret(event), self._read_ns)
            return
        facts = self._exchange.facts
        if facts.status == 200 and not facts.stream:
            self._whole += body
        elif len(facts.body) < _BODY_KEPT_BYTES:
            facts.body = (facts.body + body.decode("utf-8", "replace"))[:_BODY_KEPT_BYTES]

    def on_message_complete(self) -> None:
        self.complete = self._exchange.headers_ns is not None  # an interim 1xx message is not the answer
        if self.complete:
            self._take_whole()
        self.keep_alive = self.complete and self._parser.should_keep_alive()  # the parser forgets it right after

    def _look_for_likeness(self, read: bytes) -> None:
        """After a read that was parsed."""
        # The last byte tells a chunk's end from the beginning of the next one's size.
        between = self._between_chunks and read[-1:] == b"\n" and self._events.at_rest
        if not between or not self._streams or self._inflate is not None:
            self._likeness = None
            return
        if self._lessons:
            self._lessons -= 1
            self._likeness_learnt = Likeness.learnt_from(read) or self._likeness_learnt
        self._likeness = self._likeness_learnt

    def _inflated(self, body: bytes) -> bytes:
        try:
            return bytes(self._inflate.decompress(body))
        except zlib.error as error:
            self._exchange.facts.bad = self._exchange.facts.bad or f"not gzip, though it said so: {error}"
            return b""

    def _take_whole(self) -> None:
        facts = self._exchange.facts
        if facts.status == 200 and not facts.stream and not facts.event_stream:
            facts.take(interpret_whole(bytes(self._whole)))
