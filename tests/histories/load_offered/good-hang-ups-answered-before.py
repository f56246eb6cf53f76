"""Clients were to hang up after two seconds, but most had their whole answer before."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import Outcome


def case() -> Case:
    story = Story()
    story.traffic(0, 20, 1, ("llm-a",), hang_up_ns=2_000_000_000)
    story.traffic(20, 22, 1, ("llm-a",), hang_up_tokens=3, outcome=Outcome.ABORTED_BY_CLIENT)
    story.traffic(22, 23, 1, ("llm-a",), hang_up_tokens=3, outcome=Outcome.TRUNCATED)
    story.traffic(30, 40, 1, ("llm-a",))
    numbers = {"hang_ups_planned": 23, "hang_ups": 2, "hang_ups_answered_before": 20}
    return Case(
        story.build(), ("33 of 33", "2 of 23 planned hang-ups happened (20 answered before)"), exercised=33,
        numbers=numbers,
    )  # fmt: skip
