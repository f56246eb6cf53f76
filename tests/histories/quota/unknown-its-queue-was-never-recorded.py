"""Two jobs are admitted to a queue, and nobody recorded for how many there is quota."""

from __future__ import annotations

from dataclasses import replace

from cases import Case
from queues import asks, gets, queue
from story import Story

from harness.history.recording import Recording


def case() -> Case:
    story = Story()
    queue(story, "q", 4)
    for job in ("a", "b"):
        asks(story, 10, job, 4)
        gets(story, 11, job, 4)
    history = story.build()
    seen = Recording([event for event in history.objects if event.kind != "ClusterQueue"])
    says = ("ClusterQueue q: never recorded, so nobody knows its quota",)
    return Case(replace(history, objects=seen), says, exercised=2)
