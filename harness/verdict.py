"""Findings, and the one rule by which they become a verdict (design, 4.5).

A FAIL whose validity failed becomes UNKNOWN; every PASS becomes UNKNOWN when any validity check did not pass;
then FAIL > UNKNOWN > PASS. A run in which no check was asked for is UNKNOWN.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from harness.errors import ExitCode


class Status(enum.StrEnum):
    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"


class Role(enum.StrEnum):
    CHECK = "check"
    VALIDITY = "validity"


Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """One row that proves a finding: which object or request, when, and what was seen.

    ``ref`` points into the history (``requests:41``, ``objects:1203``, ``faults:2``); ``t_ns`` is history time.
    """

    ref: str
    t_ns: int | None
    text: str
    facts: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check says. ``exercised`` counts how often its promise was put to the test; 0 is never a pass.

    ``status`` is the check's own answer; ``judged`` what the merge rule made of it, ``because`` why they differ.
    """

    check: str
    role: Role
    status: Status
    sentence: str
    exercised: int
    numbers: dict[str, Value] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    needs: tuple[str, ...] = ()
    """Names of the validity checks on which a FAIL of this check depends."""
    judged: Status | None = None
    because: str | None = None
    story: str = ""
    """Of a FAIL, in one paragraph: promised, happened, when, which objects, first cause, what to change."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A component that broke its own promise, and the fails that follow from it.

    The first of a verdict is its root cause, as far as the history supports one. Times are history nanoseconds; texts
    give scenario seconds of the load.
    """

    component: str
    act: str
    """A verb and what follows, with counts."""
    since_ns: int
    when: str
    """``from 312.0 s of the load``."""
    scope: str = ""
    """Who is hit, and who is not."""
    inferred: bool = False
    """What is seen fits it, and could fit something else; else the component was seen to do it."""
    otherwise: str = ""
    """What the history cannot tell apart, and what would."""
    change: str = ""
    """What to change; empty where nothing follows from what is known."""
    explains: tuple[str, ...] = ()
    """Checks that failed because of it, as far as anything recorded connects them."""
    then: tuple[str, ...] = ()
    """What followed from it on the way to them, in the order of time."""
    testify: tuple[str, ...] = ()
    """What checks that passed say of the same."""
    evidence: tuple[Evidence, ...] = ()

    @property
    def line(self) -> str:
        """Component and act, with no more than is needed to go and look."""
        return f"{self.component} {self.act}"

    @property
    def sentence(self) -> str:
        scope = f"; {self.scope}" if self.scope else ""
        sure = " (inferred)" if self.inferred else ""
        return f"{self.line} ({self.when}){sure}{scope}"


@dataclass(frozen=True, slots=True)
class Verdict:
    status: Status
    sentence: str
    findings: tuple[Finding, ...]
    causes: tuple[Diagnosis, ...] = ()
    """Of a fail, the root cause first; then those that nothing recorded connects with it."""

    @property
    def exit_code(self) -> ExitCode:
        return {Status.PASS: ExitCode.PASS, Status.FAIL: ExitCode.FAIL, Status.UNKNOWN: ExitCode.UNKNOWN}[self.status]


_PREMISES = ("steady_before", "run_complete")
"""In this order. What else fails of a run that began so is its consequence: no fault is injected into a system that is
not steady, and what is broken off early has not been offered its load."""


def merge(findings: Sequence[Finding]) -> Verdict:
    """The one merge rule. Pure; the order of ``findings`` is kept."""
    broken = [f for f in findings if f.role is Role.VALIDITY and f.status is not Status.PASS]
    judged = tuple(_judge(f, [b.check for b in broken]) for f in findings)
    checks = [f for f in judged if f.role is Role.CHECK]
    failed = [f for f in checks if f.judged is Status.FAIL]
    unknown = [f for f in judged if f.judged is Status.UNKNOWN]
    if failed:
        return Verdict(Status.FAIL, _because("failed", failed), judged)
    if not checks:
        return Verdict(Status.UNKNOWN, "no check was asked for, so nothing was judged", judged)
    if unknown or broken:
        broken.sort(key=lambda f: _PREMISES.index(f.check) if f.check in _PREMISES else len(_PREMISES))
        first = [*broken, *(f for f in unknown if f.status is Status.UNKNOWN and f not in broken)]
        return Verdict(Status.UNKNOWN, _because("could not be judged", first or unknown), judged)
    return Verdict(Status.PASS, f"all {len(checks)} checks passed, and the run was valid", judged)


def _judge(finding: Finding, broken: Sequence[str]) -> Finding:
    status = finding.status
    if status is Status.PASS and finding.exercised <= 0:
        return replace(finding, judged=Status.UNKNOWN, because="its promise was never put to the test")
    if finding.role is Role.VALIDITY:
        return replace(finding, judged=Status.PASS if status is Status.PASS else Status.UNKNOWN)
    if status is Status.PASS and broken:
        return replace(finding, judged=Status.UNKNOWN, because=f"the run was not valid: {', '.join(broken)}")
    blocking = [name for name in finding.needs if name in broken]
    if status is Status.FAIL and blocking:
        return replace(finding, judged=Status.UNKNOWN, because=f"a fail of it needs {', '.join(blocking)} to hold")
    return replace(finding, judged=status)


def _because(what: str, findings: Sequence[Finding]) -> str:
    names = list(dict.fromkeys(f.check for f in findings))
    return f"{', '.join(names)} {what}: {findings[0].sentence}"


def with_causes(verdict: Verdict, causes: Sequence[Diagnosis]) -> Verdict:
    """The same verdict with what is behind it. The sentence of a fail leads with the root cause; that of a run that
    could not be judged says why not, for then a fail of a check proves nothing."""
    if not causes:
        return verdict
    sentence = verdict.sentence
    if verdict.status is Status.FAIL:
        failed = dict.fromkeys(f.check for f in verdict.findings if f.role is Role.CHECK and f.judged is Status.FAIL)
        sentence = f"{causes[0].sentence}. {', '.join(failed)} failed"
    return replace(verdict, sentence=sentence, causes=tuple(causes))
