"""Two recorded runs of one experiment, the embedded one and a real one, compared: the same states in the same order.

Each object is a life of tracks (conditions, phase, node, counts…), read as ``make behaviour`` reads it and compared
field by field. Times are scenario seconds since the first of the compared objects came, or since the warm-up was over:
how things came up before counts as what had become of it by then, for a real cluster is recorded from where it stands.
What the harness's own healing does is left out. Pure.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "behaviour"))

from bothsides.compare import Comparison, compare
from bothsides.lives import Lives, Step, lasting, lives_of
from bothsides.play import Played
from bothsides.recording import Seen
from bothsides.stage import Explained, Scenario, Stage

from harness.clock import NS_PER_S
from harness.faults.fault import Target
from harness.faults.holding import HoldFault
from harness.faults.registry import FAULTS
from harness.history.reader import History
from harness.history.tables import FaultEvent, FaultStage, ObjectEventType
from harness.kube.port import EVENT, NODE_CLAIM, EventType
from harness.run.record.recorder import RECORDED

RESOURCES = {resource.kind: resource for resource in RECORDED if resource != EVENT}
"""Events are dropped and merged, so nothing is concluded from them here."""
_NUMBER = re.compile(r"-\d+$")
"""Members of a gang are told apart by it, and by nothing else: which of them is preempted, a real scheduler draws."""

ROLES = ("the first", "the second", "the third", "the fourth")
"""Of NodeClaims; further ones keep their names, and agree with nothing."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What of two histories has to agree. ``objects`` and ``explained`` are patterns: of "Kind name" and of "Kind name,
    track". ``within_s``: scenario seconds by which a state may come earlier or later."""

    name: str
    objects: tuple[str, ...]
    within_s: float
    explained: tuple[Explained, ...] = ()
    settle_s: float = 0.0
    fleeting_s: float = 0.0
    """Objects that came and were gone within so long count on neither side."""
    placement: bool = False
    """Whether it matters on which node a pod is."""
    by_role: bool = False
    """Whether NodeClaims, whose names are drawn, are called by the order in which they came. Times are then those of
    the load, what was so before it was so at its start, and states that did not last for ``settle_s`` are left out."""


def compared(agreement: Agreement, embedded: Lives, real: Lives) -> Comparison:
    """Every difference as a sentence. That nothing was compared is one, too."""
    found = compare(_scenario(agreement), embedded, real)
    if not found.transitions and not found.differences:
        found.differences.append(f"nothing matches {', '.join(agreement.objects)}")
    return found


def wanted_lives(agreement: Agreement, history: History) -> Lives:
    """What of a recording is compared."""
    namespace = history.run.workload.get("namespace", "")
    seen = tuple(_seen(history))
    seen = tuple(_by_role(seen)) if agreement.by_role else seen
    every = lives_of(_scenario(agreement), Played(seen, (), 0.0, namespace, 0.0))
    wanted: Lives = {}
    for alias, each in every.items():
        if any(fnmatchcase(alias, pattern) for pattern in agreement.objects):
            wanted.setdefault(_NUMBER.sub("-*", alias), []).extend(each)
    for each in wanted.values():
        each[:] = [life for life in each if not _fleeting(life.tracks["there"], agreement.fleeting_s)]
    if not agreement.by_role:  # there what was before the load counts as at its beginning
        _begin_warm(wanted, history)
    steps = [steps for each in wanted.values() for life in each for steps in life.tracks.values()]
    began_s = min((t_s for track in steps for t_s, _ in track), default=0.0)
    for track in steps:
        if agreement.by_role:
            track[:] = lasting([(max(0.0, t_s), value) for t_s, value in track], agreement.settle_s)
        else:
            track[:] = [(t_s - began_s, value) for t_s, value in track]
    return wanted


def _begin_warm(wanted: Lives, history: History) -> None:
    warm = history.phase("warm_up")
    warm_s = (warm.end_ns - history.run.load_start_ns) / NS_PER_S * history.run.time_scale if warm else 0.0
    for each in wanted.values():
        each[:] = [life for life in each if not _gone_by(life.tracks["there"], warm_s)]
        for life in each:
            for track in life.tracks.values():
                before = [value for t_s, value in track if t_s < warm_s]
                track[:] = [*((warm_s, value) for value in before[-1:]), *(s for s in track if s[0] >= warm_s)]


def _fleeting(there: list[Step], shorter_s: float) -> bool:
    return len(there) > 1 and not there[-1][1] and there[-1][0] - there[0][0] < shorter_s


def _gone_by(there: list[Step], t_s: float) -> bool:
    return bool(there) and there[-1][0] < t_s and not there[-1][1]


def _scenario(agreement: Agreement) -> Scenario:
    return Scenario(
        agreement.name, agreement.name, _nothing, looks=tuple(RESOURCES.values()), explained=agreement.explained,
        within_s=agreement.within_s, within_share=0.0, settle_s=agreement.settle_s, placement=agreement.placement,
    )  # fmt: skip


def _seen(history: History) -> Iterator[Seen]:
    undone = (f.t_ns for f in history.faults if _is_undone(f))
    until_ns = min(undone, default=history.run.load_end_ns)
    for event in history.objects:
        if event.t_ns >= until_ns:
            break
        resource = RESOURCES.get(event.kind)
        if resource is None or event.type is ObjectEventType.GAP:
            continue
        t_s = (event.t_ns - history.run.load_start_ns) / NS_PER_S * history.run.time_scale
        gone = event.type is ObjectEventType.DELETED
        yield Seen(t_s, resource, EventType.DELETED if gone else EventType.MODIFIED, event.object)


def _is_undone(event: FaultEvent) -> bool:
    """A program that is back is no object that was changed: what it does then is compared."""
    fault = FAULTS[event.fault]
    undoes_itself = event.stage is FaultStage.ENDED and issubclass(fault, HoldFault)
    return fault.kind is not Target.PARTS and (undoes_itself or event.stage is FaultStage.HEALING)


def _by_role(seen: Sequence[Seen]) -> Iterator[Seen]:
    names = dict.fromkeys(s.object["metadata"]["name"] for s in seen if s.resource == NODE_CLAIM)
    roles = dict(zip(names, ROLES, strict=False))
    for each in seen:
        meta = each.object["metadata"]
        if each.resource == NODE_CLAIM and meta["name"] in roles:
            meta = {**meta, "name": roles[meta["name"]]}
        yield replace(each, object={**each.object, "metadata": meta})


async def _nothing(stage: Stage) -> None:
    """A scenario that was played already has nothing more to do."""
