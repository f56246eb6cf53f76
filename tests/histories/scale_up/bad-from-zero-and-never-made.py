"""A workload of no pods is raised to two, and none is ever made: its template tells whose they would have been."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.deployment(0)
    for kind, name in (("Deployment", "llm"), ("ReplicaSet", "llm-1")):
        template = {"metadata": {"labels": {"app": "llm"}}}
        story.change(-4, kind, name, lambda o, template=template: o["spec"].update(template=template))
    story.mark(80, "load_step")
    story.scale(100, 2)
    story.node("other", 590)
    says = ("2 of 2 added replicas not in time", "a replica without a pod never served", "quota")
    return Case(story.build(), says, (), {"ready_s_max": 200}, 2)
