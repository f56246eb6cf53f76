"""What an inspection found, for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator

from harness.inspection.inspecting import Inspection
from harness.inspection.rule import Finding, Rule, Severity
from harness.printable import line


def as_text(inspection: Inspection) -> str:
    return "\n".join(_lines(inspection)) + "\n"


def _lines(inspection: Inspection) -> Iterator[str]:
    section = ""
    for item in inspection.inventory:
        if item.section != section:
            section = item.section
            yield f"{section}:"
        yield line(f"  {item.ref}  {item.detail}".rstrip())
    if inspection.inventory:
        yield ""
    for severity in Severity:
        rules = dict.fromkeys(f.rule for f in inspection.open if f.rule.severity is severity)
        for rule in rules:
            yield from _findings(rule, [f for f in inspection.open if f.rule is rule])
            yield ""
    for finding in inspection.findings:
        if finding.accepted is not None:
            yield f"accepted  {finding.rule.id}  {line(str(finding.where))}"
            yield f"    {line(finding.sighting.object.ref)}: {line(finding.sighting.saw)}"
            yield f"    because: {line(finding.accepted)}"
    yield from (f"not judged  {rule.id}: {why}" for rule, why in inspection.not_judged)
    yield from (f"note: {line(note)}" for note in inspection.notes)
    yield summary(inspection)


def _findings(rule: Rule, findings: list[Finding]) -> Iterator[str]:
    yield f"{rule.severity.value}  {rule.id}: {rule.sentence}"
    for finding in findings:
        yield f"  {line(str(finding.where))}"
        yield f"    {line(finding.sighting.object.ref)}: {line(finding.sighting.saw)}"
        if finding.sighting.right:
            yield f"    right: {line(finding.right)}"
    if not all(finding.sighting.right for finding in findings):
        yield f"  right: {rule.right}"
    yield f"  do:    {rule.todo}"
    yield f"  seen:  {rule.incident} ({rule.source})"


def summary(inspection: Inspection) -> str:
    """One line: how much was found, in what, by how many rules."""
    count = {s: sum(f.rule.severity is s for f in inspection.open) for s in Severity}
    accepted = len(inspection.findings) - len(inspection.open)
    parts = [f"{n} {s.value}{'' if n == 1 else 's'}" for s, n in count.items() if n] or ["no problem"]
    parts += [f"{accepted} accepted"] if accepted else []
    blind = inspection.objects.blind
    unread = f"; not read: {', '.join(sorted(blind))}" if blind else ""
    return (
        f"{', '.join(parts)} in {len(inspection.objects.seen)} objects of {line(inspection.source)}, by "
        f"{len(inspection.judged)} rules{unread}"
    )


def as_json(inspection: Inspection) -> str:
    found = {
        "source": inspection.source,
        "live": inspection.objects.live,
        "objects": len(inspection.objects.seen),
        "not_read": sorted(inspection.objects.blind),
        "inventory": [{"section": i.section, "object": i.ref, "detail": i.detail} for i in inspection.inventory],
        "findings": [_as_json(finding) for finding in inspection.findings],
        "judged": [rule.id for rule in inspection.judged],
        "not_judged": [{"rule": rule.id, "why": why} for rule, why in inspection.not_judged],
        "notes": list(inspection.notes),
    }
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _as_json(finding: Finding) -> dict[str, object]:
    rule, where = finding.rule, finding.where
    return {
        "rule": rule.id,
        "severity": rule.severity.value,
        "object": finding.sighting.object.ref,
        "others": [other.ref for other in finding.sighting.others],
        "file": where.file if finding.sighting.object.document else None,
        "line": where.line,
        "key": where.key,
        "saw": finding.sighting.saw,
        "sentence": rule.sentence,
        "right": finding.right,
        "todo": rule.todo,
        "incident": rule.incident,
        "source": rule.source,
        "accepted": finding.accepted,
    }
