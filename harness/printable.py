"""Text of the run for people: names, errors and answers of models may hold anything, and must do nothing.

What could lead a terminal or a reader astray (escape sequences, line ends, marks that turn the direction of writing) is
shown as a replacement character; what is too long is cut, and says how long it was.
"""

from __future__ import annotations

LONGEST = 2_000
"""Characters of one sentence, name or error; more is not read by anybody, and pages must stay small."""
_KEPT = "\n\t"


def block(text: str, longest: int = LONGEST) -> str:
    """May have several lines."""
    cut = text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() or c in _KEPT else "\ufffd" for c in cut)


def line(text: str, longest: int = LONGEST) -> str:
    """One line."""
    return " ".join(block(text, longest).split()) if not text.isprintable() or len(text) > longest else text
