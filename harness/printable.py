"""Text of the run for people: names, errors and answers of models may hold anything, and must do nothing.

What could lead a terminal or a reader astray (escape sequences, line ends, marks that turn the direction of writing) is
shown as a replacement character; what is too long is cut, and says how long it was.
"""

from __future__ import annotations

import re

LONGEST = 2_000
"""Characters of one sentence, name or error; more is not read by anybody, and pages must stay small."""
_KEPT = "\n\t"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST_XML = 20_000
"""Characters of one text: readers of JUnit cut, or refuse, what is much longer."""


def block(text: str, longest: int = LONGEST) -> str:
    """May have several lines."""
    cut = text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() or c in _KEPT else "\ufffd" for c in cut)


def line(text: str, longest: int = LONGEST) -> str:
    """One line."""
    return " ".join(block(text, longest).split()) if not text.isprintable() or len(text) > longest else text


def for_xml(text: str) -> str:
    """Without the control characters that no XML may hold."""
    whole = _NOT_XML.sub("\ufffd", text)
    return whole if len(whole) <= _LONGEST_XML else whole[: _LONGEST_XML - 1] + "…"
