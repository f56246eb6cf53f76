"""A deployment tool puts back what the autoscaler raised."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.deployment(4)
    story.hpa(replicas_max=7)

    story.scale(100, 7)
    story.scale(130, 4, "argocd")
    says = ("1 fight over a size (first: argocd by scale set llm to 4 after kube-controller-manager by scale had",)
    return Case(story.build(), says, ("objects:5",), {}, 2, {"fights": 1})
