"""The endpoint picker is killed for a minute: every request of that time gets an error, beside two idle replicas."""

from __future__ import annotations

from cases import Case
from story import Story

from harness.history.tables import FaultStage, Outcome

REASON = '500 {"error": {"message": "the endpoint picker did not choose: failed to connect to all addresses"}}'


def case() -> Case:
    story = Story()
    for pod in ("llm-a", "llm-b"):
        story.pod(pod, "on-demand-1")
    story.fault(95, FaultStage.INJECTED, "epp", fault="component_stopped", fault_id="component_stopped-1")
    for n in range(40):
        story.request(20 + n, ("llm-a", "llm-b")[n % 2])
    for n in range(30):
        story.request(100 + 2 * n, None, Outcome.HTTP_5XX, lasts_s=0.1, status=500, reason=REASON)
    story.fault(160, FaultStage.ENDED, "epp", fault="component_stopped", fault_id="component_stopped-1")
    story.info = {"versions": {"epp": "1.2.1"}}
    return Case(story.build(), ("30 of 70 not good",), (), {"good_ratio_min": 0.95, "ttft_ms_p95": 1000}, 70)
