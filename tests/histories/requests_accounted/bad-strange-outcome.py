"""An outcome that nobody knows."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.request(1, "llm-a", outcome="vanished")  # type: ignore[arg-type]  # a history from elsewhere may hold it
    return Case(story.build(), ("an outcome nobody knows",), ("requests:0",))
