"""Looks at objects by every rule."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.errors import ExitCode
from harness.inspection.accepting import Accepts
from harness.inspection.inventory import Item, inventory
from harness.inspection.objects import Objects
from harness.inspection.registry import RULES
from harness.inspection.rule import Finding, Rule, Severity
from harness.inspection.seen import Seen
from harness.inspection.workloads import RUNS_ON


@dataclass(frozen=True, slots=True)
class Inspection:
    """What one look found. ``source`` says of what, for people."""

    source: str
    objects: Objects
    inventory: tuple[Item, ...]
    judged: tuple[Rule, ...]
    not_judged: tuple[tuple[Rule, str], ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def open(self) -> tuple[Finding, ...]:
        """Those that nobody accepted."""
        return tuple(finding for finding in self.findings if finding.accepted is None)

    def exit_code(self, least: Severity) -> ExitCode:
        """FAIL for findings of at least this severity; UNKNOWN where none was found, but part could not be read, or
        pods with GPUs are described by a kind that no rule knows."""
        severe = (Severity.ERROR,) if least is Severity.ERROR else tuple(Severity)
        if any(finding.rule.severity in severe for finding in self.open):
            return ExitCode.FAIL
        return ExitCode.UNKNOWN if self.objects.blind or self.objects.unread else ExitCode.PASS


def look(objects: Objects, accepts: Accepts, source: str, notes: tuple[str, ...] = ()) -> Inspection:
    """Findings come in the order of their places."""
    judged, not_judged, findings = [], [], []
    for rule in RULES.values():
        if rule.live_only and not objects.live:
            continue
        why = rule.unless_known(objects) if rule.unless_known else ""
        if unread := sorted(objects.blind.intersection(rule.looks_at)):
            why = f"{', '.join(unread)} could not be read"
        elif objects.unread and not why and set(RUNS_ON) <= set(rule.looks_at):
            why = f"where the pods of {', '.join(sorted({s.kind for s in objects.unread}))} stand is not known"
        if why:
            not_judged.append((rule, why))
        if not why or not unread:
            found = [Finding(rule, sighting) for sighting in rule.look(objects)]
            findings += [replace(finding, accepted=accepts.reason(finding)) for finding in found]
            judged += [] if why else [rule]
    findings.sort(key=_place)
    return Inspection(
        source, objects, tuple(dict.fromkeys(inventory(objects))), tuple(judged), tuple(not_judged), tuple(findings),
        (*notes, *map(_unread, objects.unread), *accepts.idle(findings)),
    )  # fmt: skip


def _unread(seen: Seen) -> str:
    return f"{seen.where()}: {seen.ref} asks for GPUs; where the pods of a {seen.kind} stand is not known here"


def _place(finding: Finding) -> tuple[str, int, str, str]:
    where = finding.where
    return where.file, where.line or 0, finding.sighting.object.ref, finding.rule.id
