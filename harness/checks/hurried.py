"""Pods that ended before their preStop hook was over: routers had less time to hear of it than they were promised."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.departures import PodFate, exit_code
from harness.checks.sight import blind
from harness.checks.story import moment, tell
from harness.checks.units import NS_PER_S, count, listed, scenario_s
from harness.history.tables import ObjectEventType
from harness.verdict import Evidence

if TYPE_CHECKING:
    from harness.history.reader import History

_SEEN_NS = NS_PER_S // 4
"""By so much the recorder may see a deletion later than the kubelet did."""
_START_S = 2.0
"""Scenario seconds within which a kubelet begins the hook."""


@dataclass(frozen=True, slots=True)
class Hurried:
    fate: PodFate
    after_s: float
    """Scenario seconds from the deletion to the end of its containers."""


def hurried_pods(fates: Iterable[PodFate], time_scale: float) -> list[Hurried]:
    """Only a clean exit counts: a pod that was killed had its grace cut, or lost its node, which is told elsewhere. No
    kubelet can keep a hook that is longer than the grace."""
    found: list[Hurried] = []
    for fate in fates:
        if fate.asked is None or fate.ended is None or fate.pre_stop_s >= fate.grace_s:
            continue
        node_gone_ns = fate.node.gone_ns if fate.node else None
        lost = node_gone_ns is not None and node_gone_ns <= fate.ended.t_ns
        # A pod that a list shows going was asked at a moment that nobody saw.
        before = fate.ended.t_ns < fate.asked.t_ns or fate.asked.type is ObjectEventType.LISTED
        after_s = scenario_s(fate.ended.t_ns - fate.asked.t_ns, time_scale)
        enough_s = fate.pre_stop_s - _START_S - scenario_s(_SEEN_NS, time_scale)
        if not lost and not before and exit_code(fate.ended.object) == 0 and after_s < enough_s:
            found.append(Hurried(fate, after_s))
    return found


def unseen_hooks(history: History, fates: Iterable[PodFate]) -> str | None:
    """Why a hook may have been cut short without being seen: the recorder was blind in the life of a pod with one, so
    that it may have gone meanwhile."""
    for fate in fates:
        if fate.pre_stop_s == 0:
            continue
        until_ns = max((event.t_ns for event in (fate.ended, fate.life.gone) if event is not None), default=None)
        if (gap := blind(history, {"Pod"}, fate.life.born_ns, until_ns)) is not None:
            return f"pods were not recorded until {moment(history, gap.t_ns)}, so nobody saw whether {fate.name} went"
    return None


def hurried_sentence(hurried: list[Hurried]) -> str:
    names = listed([f"{h.fate.name} {h.after_s:.1f} s after it was asked to go" for h in hurried])
    hook_s = hurried[0].fate.pre_stop_s
    return f"{count(len(hurried), 'pod')} ended before the preStop hook of {hook_s:.0f} s was over: {names}"


def hurried_story(history: History, hurried: list[Hurried]) -> str:
    first = hurried[0].fate
    return tell(
        promised=f"a pod that is asked to go serves on while its preStop hook of {first.pre_stop_s:.0f} s lasts",
        happened=hurried_sentence(hurried),
        when=moment(history, first.ended.t_ns if first.ended else None),
        objects=[h.fate.name for h in hurried],
        cause="its containers exited by themselves, with 0: they were told to stop before the hook was over",
        change=f"see in the log of the kubelet of {first.node_name} whether it ran the hook before it sent SIGTERM",
    )


def hurried_rows(hurried: list[Hurried]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            f"objects:{h.fate.ended.index}", h.fate.ended.t_ns,
            f"{h.fate.name} ended {h.after_s:.1f} s after it was asked to go, preStop {h.fate.pre_stop_s:.0f} s",
            {"pod": h.fate.name},
        )
        for h in hurried
        if h.fate.ended is not None
    )  # fmt: skip
