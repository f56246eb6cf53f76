"""A worker of a LeaderWorkerSet is lost and comes back; half a minute later all others are made anew, too."""

from __future__ import annotations

from cases import Case
from lws_group import worker_lost


def case() -> Case:
    story = worker_lost([("ds-0-1-b", 220), *((f"ds-0-{n}-c", 252) for n in range(3))])
    for name in ("ds-0-0", "ds-0-1-b", "ds-0-2"):
        story.evict(250, name)
    says = ("1 lost a member",)
    limits = {"atomicity_s_max": 60, "whole_again_s_max": 120}
    return Case(story.build(), says, (), limits, 1, {"of_before_and_after_a_loss": 0})
