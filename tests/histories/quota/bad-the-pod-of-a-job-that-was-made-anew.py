"""A Job is deleted and made anew under its name: a pod of the first stays on GPUs that were given to the second."""

from __future__ import annotations

from cases import Case
from queues import asks, gets, queue, runs
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    queue(story, "q", 4)
    for number, at_s in enumerate((10, 100)):
        uid = f"uid-a-{number}"
        asks(story, at_s, "a", 1, uid=uid)
        gets(story, at_s + 1, "a", 1)
        pod = runs(story, at_s + 2, "a", number)
        owner = [{"kind": "Job", "name": "a", "uid": uid, "controller": True}]
        story.change(at_s + 2, "Pod", pod, lambda p, own=owner: p["metadata"].update(ownerReferences=own))
        if number == 0:
            story.remove(99, "Workload", "job-a")
    says = ("a-0 held GPUs without quota for 501.0 s",)
    return Case(story.build(), says, ("objects:a-0",), {}, 2)
