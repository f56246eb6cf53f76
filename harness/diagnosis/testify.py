"""What checks that passed say of the same: a promise can be kept while its evidence tells what is wrong."""

from __future__ import annotations

import re

from harness.diagnosis.case import Case
from harness.diagnosis.suspect import Suspect
from harness.verdict import Role, Status

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")
_TELLING = ("waits for", "waited", "held back", "never ", "lost", "refused", "disruption budget", "was going already")
_MOST = 4


def testimony(case: Case, suspect: Suspect) -> tuple[str, ...]:
    """Rows of green checks about an object that the suspect's own evidence names, telling of waiting or loss."""
    names = {name for row in suspect.seen for name in _NAME.findall(row.text)} | {
        str(value) for row in suspect.seen for key, value in row.facts.items() if key in ("pod", "node") and value
    }
    found: list[str] = []
    for finding in case.findings:
        if finding.role is not Role.CHECK or finding.status is not Status.PASS:
            continue
        own = [
            r
            for r in finding.evidence
            if any(word in r.text for word in _TELLING) and names & set(_NAME.findall(r.text))
        ]
        if own:
            more = f", and {len(own) - 1} more such" if len(own) > 1 else ""
            found.append(f"{finding.check} (passed): {own[0].text}{more}")
    return tuple(found[:_MOST])
