"""The part that scrapes ended with an error, and the rest went on without it."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FAILED_MARK


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.mark(590, FAILED_MARK, "OSError", "No space left on device")
    says = ("a part of the recorder failed: OSError: No space left on device",)
    return Case(story.build(), says, ("marks:0",), numbers={"gaps": 0})
