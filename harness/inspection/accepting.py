"""The accept file: problems that somebody decided to live with, each with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from harness.inspection.registry import RULES
from harness.inspection.rule import Finding
from harness.inspection.rules.accepts import BAD_ACCEPT, accepted_in
from harness.spec.document import did_you_mean, read_document
from harness.spec.mistakes import parse
from harness.spec.model import SpecModel, Text, mistake


def _rule_id(text: str) -> str:
    if text not in RULES:
        raise mistake(f"there is no rule {text!r}", hint=did_you_mean(text, RULES))
    if text == BAD_ACCEPT.id:
        raise mistake(f"{text} cannot be accepted", hint="correct the accept that it is about")
    return text


class AcceptSpec(SpecModel):
    """One entry. ``object`` is ``Kind/namespace/name`` as findings name it, and may have ``*``."""

    rule: Annotated[str, AfterValidator(_rule_id)]
    object: Text = "*"
    reason: Text


class _AcceptFile(SpecModel):
    accept: tuple[AcceptSpec, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Accepts:
    """``file`` is empty where none was given."""

    entries: tuple[AcceptSpec, ...] = ()
    file: str = ""

    def reason(self, finding: Finding) -> str | None:
        """Why it is accepted, at its object or in the file; None where it is not."""
        if finding.rule is BAD_ACCEPT:
            return None
        for rule, why in accepted_in(finding.sighting.object):
            if rule == finding.rule.id and why:
                return why
        return next((entry.reason for entry in self.entries if _is_about(entry, finding)), None)

    def idle(self, findings: Sequence[Finding]) -> list[str]:
        """A note on each entry that accepts nothing any more."""
        return [
            f"{self.file}: nothing to accept of {entry.rule} on {entry.object} any more"
            for entry in self.entries
            if not any(_is_about(entry, finding) for finding in findings)
        ]


def _is_about(entry: AcceptSpec, finding: Finding) -> bool:
    return entry.rule == finding.rule.id and fnmatchcase(finding.sighting.object.ref, entry.object)


def read_accepts(path: Path | None) -> Accepts:
    """BadInput for an unknown rule, a missing reason, or no such file."""
    if path is None:
        return Accepts()
    document = read_document(path)
    return Accepts(parse(_AcceptFile, document.data, document, ()).accept, document.file)
