"""Compares one scenario on both sides: the same values in the same order, at about the same times. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from bothsides.lives import Life, Lives, Step, settled
from bothsides.stage import Scenario


@dataclass(slots=True)
class Comparison:
    """``differences``: one sentence each. ``latest_s``: the largest difference in time of any transition."""

    differences: list[str] = field(default_factory=list)
    latest_s: float = 0.0
    latest: str = ""
    transitions: int = 0

    @property
    def agrees(self) -> bool:
        return not self.differences


def compare(scenario: Scenario, embedded: Lives, real: Lives) -> Comparison:
    found = Comparison()
    for alias in sorted(embedded.keys() | real.keys()):
        if _is_explained(scenario, alias, "*"):
            continue
        ours = [settled(life, scenario.settle_s) for life in embedded.get(alias, [])]
        theirs = [settled(life, scenario.settle_s) for life in real.get(alias, [])]
        if len(ours) != len(theirs):
            found.differences.append(
                f"{alias}: {len(ours)} of them on the embedded side, {len(theirs)} on the real one"
            )
        for one, other in _paired(ours, theirs):
            _compare_life(scenario, alias, one, other, found)
    return found


def _paired(ours: Sequence[Life], theirs: Sequence[Life]) -> list[tuple[Life, Life]]:
    """Objects that share an alias are told apart by nothing but what they lived through: of equal lives those nearest
    in time are paired, the nearest of all first, and then what is left over."""
    alike = [
        (_apart_s(one, other), i, j)
        for i, one in enumerate(ours)
        for j, other in enumerate(theirs)
        if one.sequence() == other.sequence()
    ]
    pairs: dict[int, int] = {}
    for _, i, j in sorted(alike):
        if i not in pairs and j not in pairs.values():
            pairs[i] = j
    left = [other for j, other in enumerate(theirs) if j not in pairs.values()]
    found = [(ours[i], theirs[j]) for i, j in pairs.items()]
    for one in (one for i, one in enumerate(ours) if i not in pairs):
        if left:
            nearest = min(left, key=lambda o: _distance(one, o))
            left.remove(nearest)
            found.append((one, nearest))
    return found


def _apart_s(one: Life, other: Life) -> float:
    """Of two lives of one sequence."""
    pairs = ((a, b) for track, steps in one.tracks.items() for a, b in zip(steps, other.tracks[track], strict=True))
    return sum(abs(a_s - b_s) for (a_s, _), (b_s, _) in pairs)


def _distance(one: Life, other: Life) -> int:
    ours, theirs = dict(one.sequence()), dict(other.sequence())
    return sum(ours.get(t) != theirs.get(t) for t in ours.keys() | theirs.keys())


def _compare_life(scenario: Scenario, alias: str, one: Life, other: Life, found: Comparison) -> None:
    for track in sorted(one.tracks.keys() | other.tracks.keys()):
        if _is_explained(scenario, alias, track):
            continue
        ours, theirs = one.tracks.get(track, []), other.tracks.get(track, [])
        if [v for _, v in ours] != [v for _, v in theirs]:
            same = _same_steps(ours, theirs)
            texts = [f"{side:<8} {_shown(steps[same:])}" for side, steps in (("embedded", ours), ("real", theirs))]
            found.differences.append("\n      ".join([f"{alias}, {track}, from its step {same + 1} on:", *texts]))
            continue
        for (t_s, value), (real_s, _) in zip(ours, theirs, strict=True):
            found.transitions += 1
            apart_s = abs(t_s - real_s)
            if apart_s > found.latest_s:
                found.latest_s, found.latest = apart_s, f"{alias}, {track} = {value}"
            if apart_s > scenario.within_s + scenario.within_share * real_s:
                when = f"at {t_s:.1f} s on the embedded side, at {real_s:.1f} s on the real one"
                found.differences.append(f"{alias}, {track} = {value}: {when}")


def _is_explained(scenario: Scenario, alias: str, track: str) -> bool:
    aside = any(fnmatchcase(f"{alias}, {track}", pattern) for pattern in scenario.aside)
    return aside or any(e.covers(alias, track) for e in scenario.explained)


def _same_steps(ours: Sequence[Step], theirs: Sequence[Step]) -> int:
    """How many steps from the start are the same; one of them is kept to be shown."""
    pairs = zip(ours, theirs, strict=False)
    count = next((i for i, (a, b) in enumerate(pairs) if a[1] != b[1]), min(len(ours), len(theirs)))
    return max(0, count - 1)


def _shown(steps: Sequence[Step]) -> str:
    return " → ".join(f"{value} ({t_s:.1f} s)" for t_s, value in steps) or "never"
