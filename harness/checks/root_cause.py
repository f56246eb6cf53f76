"""Which of a run's fails comes first, which belong together, and the one line that names the cause.

Only what the findings themselves say is used: the story's cause, its moment and its objects. Nothing is guessed: where
no story has a cause that the history bears out, the line says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.checks import causes
from harness.checks.story import LABELS, NOT_TOLD
from harness.verdict import Finding, Role, Status, Verdict

_PROMISED, _HAPPENED, _WHEN, _OBJECTS, _CAUSE, _CHANGE, _ = LABELS
_EFFECTS = frozenset({"slo", "recovery", "baseline"})
"""What users or operators saw: where another check fails too, the cause is told there."""
_AT = re.compile(r"(-?\d+(?:\.\d+)?) s of the load")
_LISTED = re.compile(r", | and ")
_MORE = re.compile(r"\d+ more")

_COMPONENTS: tuple[tuple[str, str, str], ...] = (
    ("graceful_drain", causes.GATEWAY, "the gateway"),
    ("graceful_drain", "its endpoint had been closed", "the gateway: it sends to endpoints that are closed"),
    ("graceful_drain", "its endpoint still took new work", "the endpoint controller"),
    ("graceful_drain", causes.SIGTERM, "the model server"),
    ("graceful_drain", causes.CONTAINER_ENDED, "the model server"),
    ("graceful_drain", causes.REFUSED, "the readiness probe of the model server"),
    ("graceful_drain", causes.GRACE_END, "the pod's grace period"),
    ("graceful_drain", causes.KILLED_EARLY, "the kubelet, or whoever deleted the pod a second time"),
    ("graceful_drain", "before the hook was over", "the kubelet: preStop hook"),
    ("graceful_drain", causes.NODE_DEAD, "the node controller: it goes on to call a dead node Ready"),
    ("graceful_drain", causes.NODE_LOST, "the node, or the cloud that took it"),
    ("graceful_drain", causes.BEFORE_SIGTERM, "the way to the pod: routing and connections"),
    ("pdb", "the budget", "the disruption budget or the Eviction API"),
    ("pdb", "past the Eviction API", "whoever drains the node"),
    ("gang", "bound one by one", "the scheduler"),
    ("gang", "a member was lost", "the gang's own controller"),
    ("requests", "", "what lies between client and servers: the gateway, or the network"),
    ("device", "", "the node's device plugin or kubelet"),
    ("metrics_path", "scaled down blind", "the autoscaler"),
    ("metrics_path", "", "the metrics path: exporter, scraper, adapter"),
    ("controllers", "read the need", "the autoscaler"),
    ("controllers", "", "whoever writes the size: autoscalers and other controllers"),
    ("scale_down", "", "the autoscaler"),
    ("capacity", "", "the provisioner of nodes"),
    ("scale_up", "quota", "the quota, or what admits pods"),
    ("scale_up", "did not act", "the autoscaler"),
    ("scale_up", "scheduler", "the scheduler"),
    ("scale_up", "cloud capacity", "the cloud's capacity"),
    ("scale_up", "node to start", "the start of the node"),
    ("scale_up", "GPU to appear", "the node's device plugin"),
    ("scale_up", "image", "the image pull"),
    ("scale_up", "model", "the model server: loading its weights"),
    ("scale_up", "traffic", "endpoints and routing"),
)
"""By check and words of its story: the part of the system that the cause is about. The first that fits counts."""
_LIKE = {"scale_down": ("graceful_drain", "scale_down")}
"""Streams lost on replicas that were scaled away have the causes of any lost stream."""


@dataclass(frozen=True, slots=True)
class Told:
    """A failing finding, with the parts of its story that rank it."""

    finding: Finding
    cause: str
    """Empty where the history does not tell it."""
    happened: str
    at_s: float | None
    """Scenario seconds of the load."""
    objects: frozenset[str]
    component: str

    @property
    def effect(self) -> bool:
        return self.finding.check in _EFFECTS

    @property
    def line(self) -> str:
        """The cause in one line, with the part of the system it is about; what happened where it is not known."""
        if not self.cause:
            return f"{self.happened}; {NOT_TOLD}"
        return f"{self.component}: {self.cause}" if self.component else self.cause


@dataclass(frozen=True, slots=True)
class Group:
    """Fails about the same objects. The first is the one that explains most."""

    told: tuple[Told, ...]

    @property
    def first(self) -> Told:
        return self.told[0]


def story_parts(story: str) -> dict[str, str]:
    """Its parts by label, without their full stop."""
    found: dict[str, str] = {}
    places = sorted((at, label) for label in LABELS if (at := story.find(f"{label} ")) >= 0)
    for (at, label), after in zip(places, [*places[1:], (len(story), "")], strict=False):
        found[label] = story[at + len(label) : after[0]].strip().removesuffix(".")
    return found


def ranked(verdict: Verdict) -> list[Group]:
    """The fails that count: those with a cause first, of these the earliest; effects behind what may explain them."""
    failed = [f for f in verdict.findings if f.role is Role.CHECK and (f.judged or f.status) is Status.FAIL]
    told = sorted((_told(finding) for finding in failed), key=_rank)
    groups: list[list[Told]] = []
    for one in told:
        own = next((group for group in groups if any(one.objects & other.objects for other in group)), None)
        if own is None:
            groups.append([one])
        else:
            own.append(one)
    return [Group(tuple(group)) for group in groups]


def by_rank(verdict: Verdict) -> list[Finding]:
    """The checks before the validity checks; of them the fails first, ranked by their cause."""
    failed = [told.finding for group in ranked(verdict) for told in group.told]
    rest = [finding for finding in verdict.findings if not any(finding is known for known in failed)]
    return [*failed, *sorted(rest, key=lambda finding: finding.role is Role.VALIDITY)]


def root_cause(groups: Sequence[Group]) -> str:
    """One line; empty where nothing failed."""
    if not groups:
        return ""
    first = groups[0].first
    when = f" (from {first.at_s:.1f} s of the load)" if first.at_s is not None else ""
    if first.cause and not first.effect:
        others = sum(1 for group in groups[1:] if group.first.cause and not group.first.effect)
        more = f"; {others} more that nothing recorded connects with it" if others else ""
        return f"root cause, as far as the history supports it: {first.line}{when}{more}"
    about = f"; it concerns {first.component}" if first.component else ""
    return f"root cause: the history cannot tell; what is seen is that {first.happened}{when}{about}"


def one_line(finding: Finding) -> str:
    """Of any finding that did not pass: its cause where it has one, else its sentence."""
    if not finding.story:
        return finding.sentence
    told = _told(finding)
    return told.line if told.cause else finding.sentence


def _rank(told: Told) -> tuple[bool, bool, float]:
    return told.effect, not told.cause, told.at_s if told.at_s is not None else float("inf")


def _told(finding: Finding) -> Told:
    parts = story_parts(finding.story)
    cause = parts.get(_CAUSE, "")
    known = "" if cause in ("", NOT_TOLD) or cause.startswith(causes.UNEXPLAINED) else cause
    when = _AT.search(parts.get(_WHEN, ""))
    names = (name.removeprefix("Pod ").removeprefix("Node ") for name in _LISTED.split(parts.get(_OBJECTS, "")))
    objects = frozenset(name for name in names if name and not _MORE.fullmatch(name))
    happened = parts.get(_HAPPENED) or finding.sentence
    at_s = float(when[1]) if when else None
    return Told(finding, known, happened, at_s, objects, _component(finding, f"{cause} {happened}"))


def _component(finding: Finding, words: str) -> str:
    return next(
        (
            name
            for check, part, name in _COMPONENTS
            if check in _LIKE.get(finding.check, (finding.check,)) and part in words
        ),
        "",
    )
