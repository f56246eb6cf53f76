"""The demo as a story: a burst, a scale-up over a new node, a spot interruption, two gangs. Streams whole, or cut."""

from __future__ import annotations

import random

from story import Story

from harness.history.reader import History
from harness.history.tables import FaultStage, Outcome

GANG_B = {"fault_id": "apply_objects-1", "fault": "apply_objects", "disruptive": False}


def demo(cut: int = 0) -> History:
    """``cut`` streams on llm-a are cut at its SIGTERM."""
    story = Story(time_scale=15)
    _before(story)
    _scale_up(story)
    _interruption(story, cut)
    _requests(story, cut)
    return story.valid().build()


def _before(story: Story) -> None:
    for node in ("spot-1", "on-demand-1"):
        story.node(node)
    story.deployment(4)
    story.hpa()
    story.budget(3, 1)
    for pod, node in (("a", "spot-1"), ("b", "spot-1"), ("c", "on-demand-1"), ("d", "on-demand-1")):
        story.pod(f"llm-{pod}", node)
    story.group("gang-a", 2)
    story.pod("gang-a-0", "spot-1", app="gang-a", group="gang-a")
    story.pod("gang-a-1", "on-demand-1", app="gang-a", group="gang-a")


def _scale_up(story: Story) -> None:
    story.mark(80, "load_step")
    for at_s in range(0, 600, 15):
        story.waiting(at_s, llm_a=16.0 if 90 <= at_s < 130 else 0.0, llm_b=0.0)
    story.scale(105, 7)
    story.pod("llm-e", "spot-1", 105.5, running_s=108, ready_s=130)
    story.pod("llm-f", "on-demand-1", 105.5, running_s=108, ready_s=131)
    story.pod("llm-g", "on-demand-2", 105.5, refused_s=105.6, bound_s=168, running_s=190, ready_s=213)
    story.claim("on-demand-2", 108, 112)
    story.node("on-demand-2", 146, 168)
    story.budget(5, 0, 106)
    story.budget(5, 2, 214)


def _interruption(story: Story, cut: int) -> None:
    story.mark(300, "load_step")
    for at_s, stage in ((-1, FaultStage.PLANNED), (300, FaultStage.INJECTED), (301, FaultStage.OBSERVED)):
        story.fault(at_s, stage, "gang-b.yaml", **GANG_B)
    for at_s, stage in ((-1, "planned"), (320, "injected"), (321, "observed"), (395, "ended"), (590, "healed")):
        story.fault(at_s, FaultStage(stage), "spot-1")
    story.taint("spot-1", 321)
    story.evict(322, "llm-a")
    story.evict(322.5, "llm-b")
    story.budget(5, 0, 322.6)
    story.pod("llm-h", "on-demand-2", 322.3, running_s=325, ready_s=350)
    story.pod("llm-i", "on-demand-2", 322.8, running_s=326, ready_s=352)
    story.evict(323, "gang-a-0")
    story.pod("gang-a-2", "on-demand-2", 323.2, app="gang-a", group="gang-a")
    story.end(325, "gang-a-0")
    story.end(340, "llm-a", 143 if cut else 0)
    story.end(352, "llm-b")
    story.budget(5, 1, 352.5)
    story.evict(356, "llm-e")
    story.budget(5, 0, 356.1)
    story.pod("llm-j", "on-demand-4", 356.2, refused_s=356.3, bound_s=420, running_s=440, ready_s=462)
    story.claim("on-demand-4", 358, 360)
    story.node("on-demand-4", 395.5, 419)
    story.end(390, "llm-e")
    story.node_gone("spot-1", 395)
    story.group("gang-b", 4, 300)
    for n in range(4):
        story.pod(f"gang-b-{n}", "on-demand-3", 300.2, refused_s=300.4, bound_s=350, app="gang-b", group="gang-b")
    story.claim("on-demand-3", 302, 304)
    story.node("on-demand-3", 335, 350)


def _requests(story: Story, cut: int) -> None:
    chance, at_s = random.Random(3), 0.0
    while at_s < 590:
        burst = 80 <= at_s < 140 or 300 <= at_s < 360
        at_s += chance.expovariate((24 if burst else 4) / 15)
        slow = 4 if 85 < at_s < 130 else 1
        ttft_ms = chance.lognormvariate(5.2, 0.5) * slow
        story.request(
            at_s, chance.choice(_serving(at_s)), lasts_s=ttft_ms * 0.015 + chance.uniform(8, 12), ttft_ms=ttft_ms
        )
    for n in range(cut):
        story.request(318 + n / 10, "llm-a", Outcome.RESET_MID_STREAM, lasts_s=15)


def _serving(at_s: float) -> list[str]:
    from_until = {
        "llm-a": (0, 322), "llm-b": (0, 322.4), "llm-c": (0, 600), "llm-d": (0, 600), "llm-e": (130.5, 356),
        "llm-f": (131.5, 600), "llm-g": (213.5, 600), "llm-h": (350.5, 600), "llm-i": (352.5, 600),
        "llm-j": (462.5, 600),
    }  # fmt: skip
    return [pod for pod, (start, end) in from_until.items() if start <= at_s < end]
