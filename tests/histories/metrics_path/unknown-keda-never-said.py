"""The autoscaler that KEDA feeds never said what it reads."""

from __future__ import annotations

from cases import Case
from kedas import crowd


def case() -> Case:
    story = crowd()
    return Case(
        story.build(), ("nobody was ever seen to read a value of s0-prometheus of keda-hpa-llm",), (), {}, 0, {}
    )
