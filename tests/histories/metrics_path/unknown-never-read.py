"""The recorder got no value at all."""

from __future__ import annotations

from cases import Case
from queue_read import one_replica


def case() -> Case:
    story = one_replica()
    says = ("nobody was ever seen to read a value of vllm_num_requests_waiting",)
    return Case(story.build(), says, (), {}, 0, {})
