"""A recorder that sees less, or sees it twice, may make an answer unknown; it never turns a pass into a fail."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cases import Case, ask, files, load

from harness.checks.judge import CHECKS
from harness.history.lives import Json
from harness.history.reader import History
from harness.history.tables import RECORDED_KINDS, ObjectEvent, ObjectEventType
from harness.verdict import Status

KINDS = ("Pod", "Node", "Deployment", "ReplicaSet", "HorizontalPodAutoscaler", "PodDisruptionBudget", "PodGroup")
GAPS_PER_KIND = 2


def renumbered(events: list[ObjectEvent]) -> tuple[ObjectEvent, ...]:
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


def perturbed(history: History, rng: random.Random) -> Iterator[tuple[str, History]]:
    start_ns, end_ns = history.run.load_start_ns, history.run.load_end_ns
    yield "doubled", doubled(history)
    for kind in KINDS:
        for _ in range(GAPS_PER_KIND):
            since_ns = rng.randint(start_ns - 1, end_ns - 1)
            until_ns = min(end_ns, since_ns + rng.randint(100_000_000, (end_ns - start_ns) // 2))
            yield f"blind for {kind} {since_ns}-{until_ns}", blinded(history, kind, since_ns, until_ns)
    for _ in range(2 if history.objects else 0):
        kept = rng.randint(1, len(history.objects))
        yield f"cut after {kept}", cut(history, kept)


@pytest.mark.parametrize("file", [pytest.param(f, id=f"{c}/{f.stem}") for c in CHECKS for f in files(c)])
def test_less_to_see_never_flips_an_answer(file: Path) -> None:
    check, case = file.parent.name, load(file)
    answer = ask(check, case).status
    if answer is Status.UNKNOWN:
        return
    flipped = []
    for what, history in perturbed(case.history, random.Random(f"{check}/{file.stem}")):
        finding = ask(check, Case(history, (), spec=case.spec))
        if finding.status not in (answer, Status.UNKNOWN):
            flipped.append((what, finding.sentence))
    assert flipped == []
