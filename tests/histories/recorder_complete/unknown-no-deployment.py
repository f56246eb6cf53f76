"""A ReplicaSet of a Deployment, and no Deployment in all the recording: what size was wanted was not watched."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    owner = [{"uid": "uid-deployment-llm", "controller": True, "kind": "Deployment"}]
    story.put(-5, "ReplicaSet", "llm-1", {"metadata": {"ownerReferences": owner}, "spec": {"replicas": 1}})
    return Case(story.build(), ("saw no Deployment",))
