"""A worker of a LeaderWorkerSet is lost, and only it comes back, though the group is to be made anew as a whole."""

from __future__ import annotations

from cases import Case
from lws_group import worker_lost


def case() -> Case:
    story = worker_lost([("ds-0-1-b", 220)])
    says = (
        "ds-0 had ds-0-1-b, made anew after a loss, beside ds-0-0 and ds-0-2 of before it for",
        "asked for all of them anew",
    )
    limits = {"atomicity_s_max": 60, "whole_again_s_max": 120}
    return Case(story.build(), says, (), limits, 1, {"of_before_and_after_a_loss": 1})
