"""Long prompts are late, and the promise is about the others."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.traffic(10, 500, 2, ("llm-a",))
    story.traffic(11, 500, 10, ("llm-a",), ttft_ms=9000, lasts_s=100, planned_prompt_tokens=8000)
    says = ("245 requests with 0 to 4000 prompt tokens in the whole run",)
    return Case(story.build(), says, (), {"ttft_ms_p95": 3000, "prompt_tokens_max": 4000}, 245)
