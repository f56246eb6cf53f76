"""Who came and who stayed when a group lost a member that is to be made anew as a whole: they do not fit together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.gang_groups import Group
from harness.checks.units import both, listed
from harness.history.lives import Life, going, labels_of, lives, node_of, terminal
from harness.history.tables import ObjectEvent

if TYPE_CHECKING:
    from harness.history.reader import History

_NAME = "leaderworkerset.sigs.k8s.io/name"
_AS_ONE = "RecreateGroupOnPodRestart"
"""The default of a LeaderWorkerSet's ``restartPolicy`` (leaderworkerset.x-k8s.io/v1)."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """A member of after a loss held its place beside members of before it. ``event``: the new one's first there."""

    group: Group
    new: str
    old: tuple[str, ...]
    event: ObjectEvent
    length_ns: int
    time_scale: float

    def __str__(self) -> str:
        old = listed(list(self.old))
        return (
            f"{self.group.name} had {self.new}, made anew after a loss, beside {old} of before it for "
            f"{both(self.length_ns, self.time_scale)}, and asked for all of them anew"
        )


def mixed(history: History, group: Group, limit_ns: int) -> Mixed | None:
    """The first such time that lasted for longer than ``limit_ns``, in which a group is ended and made; None of a group
    that asks for nothing of the kind, and of times in which nobody recorded pods."""
    if not _asks_for_all(history, group):
        return None
    held = {m.uid: span for m in group.members if (span := _held(m, history.recorded_until_ns)) is not None}
    for new in group.members:
        if new.uid not in held:
            continue
        came, until_ns = held[new.uid]
        left = [end for uid, (_, end) in held.items() if uid != new.uid and end <= new.born_ns]
        if not left:
            continue
        old = [m for m in group.members if m.uid in held and _beside(held[m.uid], max(left), came.t_ns + limit_ns)]
        if old:
            end_ns = min(until_ns, *(held[m.uid][1] for m in old))
            unseen = any(
                gap.kind == "Pod" and (gap.since_ns or 0) < end_ns and gap.t_ns > came.t_ns for gap in history.gaps
            )
            if end_ns - came.t_ns > limit_ns and not unseen:
                names = tuple(sorted(m.name for m in old))
                return Mixed(group, new.name, names, came, end_ns - came.t_ns, history.run.time_scale)
    return None


def _beside(held: tuple[ObjectEvent, int], lost_ns: int, until_ns: int) -> bool:
    """Whether it was there when the other was lost, and stayed."""
    return held[0].t_ns < lost_ns and held[1] > until_ns


def _asks_for_all(history: History, group: Group) -> bool:
    names = {labels_of(m.last).get(_NAME) for m in group.members}
    return any(
        each.last.get("spec", {}).get("leaderWorkerTemplate", {}).get("restartPolicy") == _AS_ONE
        for each in lives(history.objects, "LeaderWorkerSet")
        if each.namespace == group.namespace and each.name in names
    )


def _held(member: Life, end_ns: int) -> tuple[ObjectEvent, int] | None:
    """From when on it held its place, and until when; None for one that never did."""
    came = member.when(lambda pod: bool(node_of(pod)) and not terminal(pod) and not going(pod))
    if came is None:
        return None
    left = member.when(lambda pod: going(pod) or terminal(pod)) or member.gone
    return came, left.t_ns if left else end_ns
