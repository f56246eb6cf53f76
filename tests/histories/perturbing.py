"""One history as worse recorders would have seen it: less of it, twice, out of order, with clocks that are off.

Only what the API allows: of objects a watch delivers every change in order or is known to have a gap, while Events are
dropped at will; watches of different kinds are not ordered among each other; times in objects come from many clocks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

from harness.history.reader import History
from harness.history.tables import RECORDED_KINDS, ObjectEvent, ObjectEventType

Json = dict[str, Any]
KINDS = ("Pod", "Node", "Deployment", "ReplicaSet", "HorizontalPodAutoscaler", "PodDisruptionBudget", "PodGroup",
         "EndpointSlice", "NodeClaim")  # fmt: skip
APART_NS = 200_000_000
"""By so much the same moment may be received apart through watches of two kinds."""
SKEW_S = 7
_STAMP = re.compile(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?Z"')


def renumbered(events: list[ObjectEvent]) -> Any:
    return tuple(replace(event, index=index) for index, event in enumerate(events))


def blinded(history: History, kind: str, since_ns: int, until_ns: int) -> History:
    """Nobody saw the kind in between; afterwards it is listed anew."""
    kept: list[ObjectEvent] = []
    known: dict[str, Json] = {}
    for event in history.objects:
        mine = event.kind == kind and event.type is not ObjectEventType.GAP and event.t_ns < until_ns
        if not mine or event.t_ns < since_ns:
            kept.append(event)
        if mine and event.type is ObjectEventType.DELETED:
            known.pop(event.uid, None)
        elif mine:
            known[event.uid] = event.object
    gap = ObjectEvent(0, until_ns, kind, ObjectEventType.GAP, since_ns=since_ns, reason="410 Gone")
    listed = [ObjectEvent(0, until_ns, kind, ObjectEventType.LISTED, obj) for obj in known.values()]
    at = next((i for i, event in enumerate(kept) if event.t_ns >= until_ns), len(kept))
    return replace(history, objects=renumbered([*kept[:at], gap, *listed, *kept[at:]]))


def cut(history: History, kept: int) -> History:
    since_ns = history.objects[kept - 1].t_ns
    gaps = [
        ObjectEvent(0, history.run.load_end_ns, kind, ObjectEventType.GAP, since_ns=since_ns, reason="the file is cut")
        for kind in RECORDED_KINDS
    ]
    return replace(history, objects=renumbered([*history.objects[:kept], *gaps]))


def doubled(history: History) -> History:
    again = ObjectEventType.MODIFIED
    return replace(
        history, objects=renumbered([e for o in history.objects for e in ([o, o] if o.type is again else [o])])
    )


def without_events(history: History, rng: Random, share: float) -> History:
    """Kubernetes' own Events are dropped, merged and limited as it likes."""
    kept = [e for e in history.objects if e.kind != "Event" or rng.random() >= share]
    return replace(history, objects=renumbered(kept))


def out_of_order(history: History, rng: Random) -> History:
    """Each kind's watch is late by an amount of its own; within a kind the order stays."""
    late = {kind: rng.randint(0, APART_NS) for kind in dict.fromkeys(e.kind for e in history.objects)}
    moved = sorted(
        (
            replace(e, t_ns=e.t_ns + late[e.kind], since_ns=None if e.since_ns is None else e.since_ns + late[e.kind])
            for e in history.objects
        ),
        key=lambda e: e.t_ns,
    )
    return replace(history, objects=renumbered(moved))


def skewed(history: History, kind: str, by_s: int) -> History:
    """Whoever writes objects of the kind has a clock that is off."""

    def moved(match: re.Match[str]) -> str:
        at = datetime.fromisoformat(match[1]) + timedelta(seconds=by_s)
        return f'"{at.isoformat()}{match[2] or ""}Z"'

    events = [
        replace(e, object=json.loads(_STAMP.sub(moved, json.dumps(e.object)))) if e.kind == kind else e
        for e in history.objects
    ]
    return replace(history, objects=tuple(events))  # type: ignore[arg-type]  # History makes a Recording of it


def _span(history: History, rng: Random) -> tuple[int, int]:
    start_ns, end_ns = history.run.load_start_ns, history.run.load_end_ns
    since_ns = rng.randint(start_ns - 1, end_ns - 1)
    return since_ns, min(end_ns, since_ns + rng.randint(100_000_000, (end_ns - start_ns) // 2))


Perturb = Callable[[History, Random], History]
PERTURBATIONS: dict[str, Perturb] = {
    "all Events dropped": lambda history, rng: without_events(history, rng, 1.0),
    "half of the Events dropped": lambda history, rng: without_events(history, rng, 0.5),
    "doubled": lambda history, rng: doubled(history),
    "kinds out of order": out_of_order,
    "the file cut": lambda history, rng: cut(history, rng.randint(1, len(history.objects))),
    "clocks of nodes off": lambda history, rng: skewed(skewed(history, "Node", SKEW_S), "Pod", SKEW_S),
    "clock of a controller off": lambda history, rng: skewed(history, "HorizontalPodAutoscaler", -SKEW_S),
    **{
        f"a gap in {kind}": lambda history, rng, kind=kind: blinded(history, kind, *_span(history, rng))
        for kind in KINDS
    },
}
