"""From what was recorded to lives: for each object the values that each of its tracks took, and when. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bothsides.names import Names
from bothsides.play import ROOM, Played
from bothsides.stage import Scenario
from bothsides.views import VIEWS, canonical, may_pass, plain

from harness.kube.port import EVENT, EventType

Step = tuple[float, Any]
"""(since, value)."""


@dataclass(slots=True)
class Life:
    """One object. ``tracks["there"]`` says when it came and went."""

    tracks: dict[str, list[Step]] = field(default_factory=lambda: defaultdict(list))

    def note(self, t_s: float, track: str, value: Any) -> None:
        steps = self.tracks[track]
        if not steps or steps[-1][1] != value:
            steps.append((t_s, value))

    def sequence(self) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        """What is compared exactly: every track's values in order."""
        return tuple((name, tuple(v for _, v in steps)) for name, steps in sorted(self.tracks.items()))


Lives = dict[str, list[Life]]
"""Kind and alias → the lives of the objects that share it."""


def lives_of(scenario: Scenario, played: Played) -> Lives:
    alike = () if scenario.placement else tuple(n.name for n in scenario.nodes or ROOM)
    names = Names(played.seen, played.namespace, alike)
    by_uid: dict[tuple[str, str], Life] = {}
    told: dict[str, Life] = {}
    for seen in played.seen:
        meta = seen.object["metadata"]
        if seen.resource == EVENT:
            _tell(told, seen.object, names)
            continue
        kind = seen.resource.kind
        if seen.resource not in scenario.looks or _foreign(scenario, played.namespace, kind, meta["name"]):
            continue
        key = f"{kind} {names.alias(kind, meta['name'])}", str(meta["uid"])
        life = by_uid.setdefault(key, Life())
        if seen.type is EventType.DELETED:
            life.note(seen.t_s, "there", False)
            continue
        life.note(seen.t_s, "there", True)
        for track, value in VIEWS.get(kind, plain)(seen.object, names).items():
            # Which of several equal nodes takes a pod is drawn by the real scheduler.
            drawn = track in ("node", "nominated") and not scenario.placement
            life.note(seen.t_s, track, bool(value) if drawn else value)
    lives: Lives = defaultdict(list)
    for (alias, _), life in by_uid.items():
        lives[alias].append(life)
    for alias, life in told.items():
        lives[alias].append(life)
    if played.answers:
        answered = Life()
        for answer in played.answers:
            answered.note(answer.t_s, f"answer {answer.label}", names.text(answer.text))
        lives["Answers"].append(answered)
    return dict(lives)


def _foreign(scenario: Scenario, namespace: str, kind: str, name: str) -> bool:
    """Nodes and namespaces that are not the scenario's."""
    if kind == "Namespace":
        return name != namespace
    return kind == "Node" and name not in {n.name for n in scenario.nodes}


def _tell(told: dict[str, Life], event: Any, names: Names) -> None:
    """Events as a set per object: they are dropped, merged and delayed, so their number and order say nothing."""
    about = event["involvedObject"]
    component = event.get("reportingComponent") or (event.get("source") or {}).get("component") or ""
    if component == "kubelet" or not component:
        return
    life = told.setdefault(f"Event {about['kind']} {names.alias(about['kind'], about['name'])}", Life())
    said = names.text(event.get("message") or "").removeprefix("(combined from similar events): ")
    life.note(0.0, f"{event['type']} {event['reason']} {said}", component)


SEEN_LATE = ("count currentReplicas", "count desiredReplicas", "metrics")
"""An autoscaler is born with a status of nothing, and keeps it until the controller looks for the first time."""


ON_ITS_WAY = "ongoing preemption on nominated nodes"
"""Said by a real scheduler if it happens to look at a gang again while its victims leave."""


def settled(life: Life, settle_s: float) -> Life:
    """Without the values of counts that made way for the next one within ``settle_s``."""
    kept = Life()
    for track, every in life.tracks.items():
        if track.endswith(ON_ITS_WAY):
            continue
        steps = [step for step in every if not _is_on_its_way(step[1])]
        if track in SEEN_LATE and len(steps) > 1 and steps[0][1] in (0, ()):
            steps = steps[1:]
        for t_s, value in lasting(steps, settle_s) if may_pass(track) else steps:
            kept.note(t_s, track, value)
    return kept


def _is_on_its_way(value: Any) -> bool:
    """``value`` is a condition: (status, reason, message)."""
    return isinstance(value, tuple) and len(value) == 3 and str(value[2]).endswith(ON_ITS_WAY)


def lasting(steps: Sequence[Step], settle_s: float) -> list[Step]:
    """The last value always counts."""
    return [s for s, after in pairwise(steps) if after[0] - s[0] >= settle_s] + list(steps[-1:])


def to_json(lives: Lives) -> str:
    """One line per track; times to the hundredth of a second."""
    rows = {
        alias: [
            {track: [[round(t_s, 2), value] for t_s, value in steps] for track, steps in life.tracks.items()}
            for life in each
        ]
        for alias, each in sorted(lives.items())
    }
    lines = ",\n".join(f"{json.dumps(alias)}: {json.dumps(each)}" for alias, each in rows.items())
    return "{" + lines + "}\n"


def plays_to_json(plays: Sequence[Lives]) -> str:
    return "[" + ",\n".join(to_json(lives).rstrip() for lives in plays) + "]\n"


def plays_from_json(text: str) -> list[Lives]:
    return [_lives(each) for each in json.loads(text)]


def _rows(life: Life) -> dict[str, list[list[Any]]]:
    return {track: [[round(t_s, 2), value] for t_s, value in steps] for track, steps in sorted(life.tracks.items())}


def _lives(rows: dict[str, list[dict[str, list[list[Any]]]]]) -> Lives:
    return {alias: [_life(tracks) for tracks in each] for alias, each in rows.items()}


def _life(tracks: dict[str, list[list[Any]]]) -> Life:
    life = Life()
    for track, steps in tracks.items():
        for t_s, value in steps:
            life.note(t_s, track, canonical(value))
    return life
