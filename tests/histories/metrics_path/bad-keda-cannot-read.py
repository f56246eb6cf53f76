"""KEDA's source is gone: by its own word the autoscaler can read nothing for five minutes."""

from __future__ import annotations

from cases import Case
from kedas import crowd, says


def case() -> Case:
    story = crowd()
    says(story, 10, "500m")
    says(story, 50, None)
    says(story, 350, "0")
    sentence = ("nothing was read for", "1 hole in it, the longest 300.0 s")
    return Case(
        story.build(),
        sentence,
        ("objects:7", "objects:7"),
        {"seen_s_max": 30},
        2,
        {"never_read": 1, "hole_s_longest": 300.0},
    )
