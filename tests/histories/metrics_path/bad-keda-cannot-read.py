"""KEDA's source hangs: by its own word the autoscaler can read nothing for five minutes."""

from __future__ import annotations

from cases import Case
from kedas import crowd, says

from harness.history.tables import FaultStage


def case() -> Case:
    story = crowd()
    says(story, 10, "500m")
    story.fault(50, FaultStage.INJECTED, "prometheus", fault="component_stopped", fault_id="component_stopped-1")
    seen = "prometheus: its process stands still"
    story.fault(
        51, FaultStage.OBSERVED, "prometheus", detail=seen, fault="component_stopped", fault_id="component_stopped-1"
    )
    says(story, 52, None)
    story.fault(345, FaultStage.ENDED, "prometheus", fault="component_stopped", fault_id="component_stopped-1")
    says(story, 352, "0")
    sentence = ("nothing was read for", "1 hole in it, the longest 300.0 s")
    return Case(
        story.build(),
        sentence,
        ("objects:7", "objects:7"),
        {"seen_s_max": 30},
        2,
        {"never_read": 1, "hole_s_longest": 300.0},
    )
