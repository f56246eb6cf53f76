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
class Verdict:
    status: Status
    sentence: str
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> ExitCode:
        return {Status.PASS: ExitCode.PASS, Status.FAIL: ExitCode.FAIL, Status.UNKNOWN: ExitCode.UNKNOWN}[self.status]


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
