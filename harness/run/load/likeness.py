"""Most reads of a stream are HTTP chunks of one event each, which differ from those before in their text alone.

Such a read is known by comparing bytes, without a parser. Whatever else comes goes through the parsers, so this may
only count what they would have found to be whole chunks of one ``TOKEN`` each, after which they stand as before. Pure.
"""

from __future__ import annotations

import re

from harness.run.load.stream import TOKEN, SseEvent, interpret, text_of

_LONGEST_CHUNK = 4096
_PROBE = "gpu-harness"

_TEXT = re.compile(
    rb"[ !#-\[\]-~]+"  # ASCII without quote and backslash: nearly always
    rb'|(?:[ !#-\[\]-~]|\\["\\/bfnrt]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|\xed[\x80-\x9f][\x80-\xbf]'
    rb"|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}"
    rb"|\xf4[\x80-\x8f][\x80-\xbf]{2})+"
)
"""Inside of a JSON string that is not empty: what RFC 8259 and well-formed UTF-8 allow, but for ``\\u`` escapes."""
_is_text = _TEXT.fullmatch
_KEY = re.compile(rb'"(?:content|text)": ?"')
_CHUNK = re.compile(rb"(?P<size>[1-9a-f][0-9a-f]*)\r\ndata: (?P<json>\{[^\r\n]*\})\n\n\r\n")
_AROUND_JSON = len(b"data: \n\n")


def _head(chunk_bytes: int) -> bytes:
    """How a chunk of this length, frame and all, begins if it holds one event; what never comes if there is none."""
    for digits in range(1, 5):
        size = chunk_bytes - digits - 4
        if size > 0 and len(f"{size:x}") == digits:
            return b"%x\r\ndata: " % size
    return b"\0"


_HEADS = [_head(length) for length in range(_LONGEST_CHUNK)]


class Likeness:
    """What surrounds the text in the events of one stream."""

    __slots__ = ("_after", "_after_bytes", "_before", "_before_bytes")

    def __init__(self, before: bytes, after: bytes) -> None:
        """JSON up to the text's opening quote, and from its closing one on."""
        self._before, self._before_bytes = before, len(before)
        self._after = after + b"\n\n\r\n"
        self._after_bytes = len(self._after)

    @classmethod
    def learnt_from(cls, read: bytes) -> Likeness | None:
        """None where no chunk of the read is one ``TOKEN``, or none has its text in a place that is known."""
        for chunk in _CHUNK.finditer(read):
            event = chunk["json"]
            if int(chunk["size"], 16) == len(event) + _AROUND_JSON and interpret(SseEvent(event)) is TOKEN:
                return cls._around_text(event)
        return None

    @classmethod
    def _around_text(cls, event: bytes) -> Likeness | None:
        for key in _KEY.finditer(event):
            text = _TEXT.match(event, key.end())
            if text is None:
                continue
            before, after = event[: key.end()], event[text.end() :]
            # Proof by trying: with another text there the event means the same, and that text is the token's.
            tried = before + _PROBE.encode() + after
            if after[:1] == b'"' and text_of(tried) == _PROBE and interpret(SseEvent(tried)) is TOKEN:
                return cls(before, after)
        return None

    def tokens_in(self, read: bytes) -> int:
        """Of how many whole chunks of one ``TOKEN`` each the read consists; 0 where there is anything else in it.

        Holds only for what follows a whole chunk and a whole event.
        """
        before, after, after_bytes = self._before, self._after, self._after_bytes
        at, length, count = 0, len(read), 0
        while at < length:
            chunk_bytes = length - at  # the last one, most often
            if chunk_bytes >= _LONGEST_CHUNK or not read.startswith(head := _HEADS[chunk_bytes], at):
                chunk_bytes = read.find(after, at) + after_bytes - at
                if not after_bytes <= chunk_bytes < _LONGEST_CHUNK:
                    return 0
                if not read.startswith(head := _HEADS[chunk_bytes], at):
                    return 0
            start, text_end = at + len(head), at + chunk_bytes - after_bytes
            if (
                not read.startswith(before, start)
                or not read.startswith(after, text_end)
                or _is_text(read, start + self._before_bytes, text_end) is None
            ):
                return 0
            at += chunk_bytes
            count += 1
        return count
