"""The story of report.html: each cause in one plain sentence first, then what shows it, what followed, what to change;
the fails that it explains beneath it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.checks.root_cause import Group, ranked
from harness.checks.story import CAUSE, CHANGE, LABELS, story_parts
from harness.report import content
from harness.report.content import status_of
from harness.report.markup import chip, evidence_list, text_of
from harness.verdict import Diagnosis, Finding, Role, Status, Verdict

if TYPE_CHECKING:
    from harness.history.reader import History

_STORY = 6_000
_SHOWN = 5


def stories(history: History, verdict: Verdict) -> str:
    """Causes with their fails; then why the run may not be judged; then what a check could not tell by itself."""
    parts = [_group(history, number, group) for number, group in enumerate(ranked(verdict), 1)]
    checks, validity = content.by_role(verdict, Role.CHECK), content.by_role(verdict, Role.VALIDITY)
    told = [(f, f.sentence) for f in validity if status_of(f) is not Status.PASS]
    told += [
        (f, f.sentence + (f" (it counts as unknown because {f.because})" if f.because else ""))
        for f in checks
        if status_of(f) is Status.UNKNOWN and f.status is not Status.PASS
    ]
    parts += [_story(finding, text) for finding, text in told]
    if verdict.status is Status.UNKNOWN and verdict.causes:
        parts.append(_not_counted(history, verdict))
    if not parts:
        return '<section><h2>Story</h2><p class="lead">Every promise was kept, and the run was valid.</p></section>'
    return f"<section><h2>Story</h2>{''.join(parts)}</section>"


def facts_of(cause: Diagnosis) -> list[tuple[str, str]]:
    """What stands under a cause's sentence, by name; what is not known is left out."""
    found = [
        ("Known how", _sure(cause)),
        ("Then", "; ".join(cause.then)),
        ("Green checks say", "; ".join(cause.testify)),
        ("What to change", cause.change),
        ("Explains", ", ".join(cause.explains)),
    ]
    return [(name, text) for name, text in found if text]


def _sure(cause: Diagnosis) -> str:
    sure = "inferred from what was seen" if cause.inferred else "seen"
    return f"{sure}; not told apart: {cause.otherwise}" if cause.otherwise else sure


def _group(history: History, number: int, group: Group) -> str:
    below = "".join(_story(finding, _shorter(finding, group)) for finding in group.findings)
    head = f'<h3 class="cause">{number}. {text_of(_capital(group.line), 1_000)}</h3>'
    if group.cause is None:
        return head + below
    return f"{head}{_facts(history, group.cause)}{below}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _facts(history: History, cause: Diagnosis) -> str:
    lines = "".join(f"<div><dt>{text_of(k)}</dt><dd>{text_of(v)}</dd></div>" for k, v in facts_of(cause))
    rest = "… and others" if len(cause.evidence) > _SHOWN else ""  # how many is unknown: a cause keeps its first rows
    return f'<dl class="why">{lines}</dl>{evidence_list(history, cause.evidence[:_SHOWN], rest)}'


def _shorter(finding: Finding, group: Group) -> str:
    """Without what the cause above it says already."""
    if group.cause is None or not finding.story:
        return finding.story or finding.sentence
    parts = story_parts(finding.story)
    return " ".join(f"{label} {parts[label]}." for label in LABELS if parts.get(label) and label not in (CAUSE, CHANGE))


def _not_counted(history: History, verdict: Verdict) -> str:
    """Fails that do not count are told all the same: the run may not prove them, and still be worth a look."""
    blocks = "".join(
        f'<h3 class="cause">{text_of(_capital(cause.sentence), 1_000)}</h3>{_facts(history, cause)}'
        for cause in verdict.causes
    )
    return f'<p class="lead">Not proven, since the run may not be judged, but seen:</p>{blocks}'


def _story(finding: Finding, text: str) -> str:
    status = status_of(finding)
    return (
        f'<p class="story {status.value}">{chip(status)} <code>{text_of(finding.check)}</code> '
        f"{_labelled(text_of(text, _STORY))}</p>"
    )


def _labelled(text: str, labels: Iterable[str] = LABELS) -> str:
    """Each part of a story begins a line, its label in bold, for readers who look for the cause first."""
    for label in labels:
        text = text.replace(f"{label} ", f"<br><b>{label}</b> ", 1)
    return text
