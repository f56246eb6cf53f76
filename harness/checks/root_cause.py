"""Which of a run's fails belong together: those that one cause explains, and then, each for itself, those that no
component was found to be behind."""

from __future__ import annotations

from dataclasses import dataclass

from harness.checks.story import CAUSE, HAPPENED, NOT_TOLD, story_parts
from harness.verdict import Diagnosis, Finding, Role, Status, Verdict

_EFFECTS = frozenset({"slo", "recovery", "baseline"})
"""What users or operators saw: where another check fails too, what it says comes first."""


@dataclass(frozen=True, slots=True)
class Group:
    """Fails with the cause that explains them; without one a single fail of which nothing recorded tells why."""

    cause: Diagnosis | None
    findings: tuple[Finding, ...]

    @property
    def line(self) -> str:
        if self.cause is not None:
            return self.cause.sentence
        return untold(self.findings[0])


def ranked(verdict: Verdict) -> list[Group]:
    """The fails that count, by their causes, the root cause first."""
    failed = _failed(verdict)
    groups = [Group(cause, tuple(f for f in failed if f.check in cause.explains)) for cause in verdict.causes]
    known = {id(finding) for group in groups for finding in group.findings}
    rest = sorted((f for f in failed if id(f) not in known), key=lambda f: f.check in _EFFECTS)
    return [*(group for group in groups if group.findings), *(Group(None, (finding,)) for finding in rest)]


def by_rank(verdict: Verdict) -> list[Finding]:
    """The checks before the validity checks; of them the fails first, ranked by their cause."""
    failed = [finding for group in ranked(verdict) for finding in group.findings]
    rest = [finding for finding in verdict.findings if not any(finding is known for known in failed)]
    return [*failed, *sorted(rest, key=lambda finding: finding.role is Role.VALIDITY)]


def root_cause(verdict: Verdict) -> str:
    """One line; empty where nothing failed."""
    groups = ranked(verdict)
    if not groups:
        return ""
    others = sum(1 for group in groups[1:] if group.cause is not None)
    more = f"; {others} more that nothing recorded connects with it" if others else ""
    return f"root cause: {groups[0].line}{more}"


def one_line(verdict: Verdict, finding: Finding) -> str:
    """Of any finding that did not pass: the cause that explains it, else its own story's, else its sentence."""
    if finding.status is Status.FAIL:
        for cause in verdict.causes:
            if finding.check in cause.explains:
                return cause.sentence
        told = story_parts(finding.story).get(CAUSE, NOT_TOLD)
        if told != NOT_TOLD:
            return told
    return finding.sentence


def untold(finding: Finding) -> str:
    """What was seen of a fail of which no component is known to be the cause."""
    parts = story_parts(finding.story)
    return f"not told by the history; what is seen is that {parts.get(HAPPENED) or finding.sentence}"


def _failed(verdict: Verdict) -> list[Finding]:
    return [f for f in verdict.findings if f.role is Role.CHECK and (f.judged or f.status) is Status.FAIL]
