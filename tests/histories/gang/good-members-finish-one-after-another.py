"""Members of a gang that finish their work at different times leave nobody in the lurch."""

from __future__ import annotations

from cases import Case
from story import Story


def case() -> Case:
    story = Story()
    story.node("on-demand-1")
    story.group("gang-b", 2, 300)
    for n in range(2):
        story.pod(f"gang-b-{n}", "on-demand-1", 300.5, refused_s=301, bound_s=320, app="gang-b", group="gang-b")
    story.change(400, "Pod", "gang-b-0", lambda p: p["status"].update(phase="Succeeded"))
    story.change(550, "Pod", "gang-b-1", lambda p: p["status"].update(phase="Succeeded"))
    story.remove(580, "Pod", "gang-b-0")
    says = ("1 met a shortage, 0 lost a member", "for longer than 0.0 s")
    return Case(story.build(), says, (), {"atomicity_s_max": 60}, 1)
