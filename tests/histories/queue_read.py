"""A replica and the autoscaler that goes by its queue, as histories of the metrics path begin."""

from __future__ import annotations

from story import Story


def one_replica() -> Story:
    """The recorder scrapes all the while; what of the metric is read is each history's own."""
    story = Story()
    story.deployment(1)
    story.hpa()
    story.pod("llm-a", "on-demand-1")
    for at_s in range(0, 600, 5):
        story.sample(at_s, "gateway", "gateway_requests_in_flight", 1.0)
    return story
