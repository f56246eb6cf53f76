"""summary.md: what fits a CI job's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.checks.root_cause import Group, ranked, root_cause
from harness.printable import LONGEST, line
from harness.report import content
from harness.report.content import Section, status_of
from harness.report.story_part import facts_of
from harness.verdict import Finding, Role, Status, Verdict

if TYPE_CHECKING:
    from harness.history.reader import History

_ROWS = 10
_LONGEST = 400
_SEEN = 3


def summary_md(history: History, verdict: Verdict, plan: Mapping[str, Any]) -> str:
    run = history.run
    symbol = content.SYMBOLS[verdict.status]
    groups = ranked(verdict)
    led = bool(verdict.causes) and verdict.status is Status.FAIL
    parts = [
        f"# {symbol} {verdict.status.value}: {_inline(run.title or run.experiment or 'run')}",
        _lead(verdict, led),
        f"**{_inline(_capital(cause), longest=None)}.**" if not led and (cause := root_cause(verdict)) else "",
        _findings("Checks", content.by_role(verdict, Role.CHECK)),
        _stories(groups),
        _findings("Was the run valid?", content.by_role(verdict, Role.VALIDITY)),
        _section(content.troubled(history, verdict)),
        *(_section(section) for section in content.replica_sections(history)),
        _section(content.outcomes(history)),
        "## Run\n\n" + "\n".join(f"- {name}: {_inline(value)}" for name, value in content.facts(history, plan)),
        f"Real: {_inline(', '.join(run.real) or 'not stated')}.",
        f"Emulated: {_inline(', '.join(run.emulated) or 'nothing')}.",
        f"Repeat: `{_flat(run.command).replace('`', ' ')}`" if run.command else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _lead(verdict: Verdict, led: bool) -> str:
    """The verdict's sentence; in bold and whole where it is the root cause."""
    if led:
        return f"**{_inline(_capital(verdict.sentence), longest=None)}.**"
    return f"{_inline(verdict.sentence)}."


def _findings(title: str, findings: list[Finding]) -> str:
    if not findings:
        return f"## {title}\n\nNone."
    lines = ["| check | status | finding | exercised |", "|---|---|---|---:|"]
    for finding in findings:
        status = status_of(finding)
        because = f" ({finding.because})" if finding.because else ""
        sentence = _inline(finding.sentence + because)
        lines.append(
            f"| {finding.check} | {content.SYMBOLS[status]} {status.value} | {sentence} | {finding.exercised} |"
        )
    return f"## {title}\n\n" + "\n".join(lines)


def _stories(groups: Sequence[Group]) -> str:
    """Each cause in one sentence, with what is known of it and the fails that it explains; then the fails of which
    nothing tells why."""
    told: list[str] = []
    for number, group in enumerate(groups, 1):
        told.append(f"{number}. **{_inline(_capital(group.line), longest=None)}**")
        known = facts_of(group.cause) if group.cause is not None else []
        told += [f"   - {name}: {_inline(text, longest=None)}" for name, text in known]
        told += [
            f"   - {row.ref}: {_inline(row.text)}" for row in (group.cause.evidence[:_SEEN] if group.cause else ())
        ]
        told += [f"   - **{f.check}** {_inline(f.story or f.sentence, longest=None)}" for f in group.findings]
    return "## What happened\n\n" + "\n".join(told) if told else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _section(section: Section) -> str:
    text = f"## {section.title}\n\n{_inline(section.lead)}"
    if section.table is None or not section.table.rows:
        return text
    lines = [_row(section.table.columns), _row(["---"] * len(section.table.columns))]
    lines += [_row([cell.text for cell in row]) for row in section.table.rows[:_ROWS]]
    more = len(section.table.rows) - _ROWS
    rest = f"\n\n{more} more in report.html." if more > 0 else ""
    return text + "\n\n" + "\n".join(lines) + rest


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(_inline(cell) for cell in cells) + " |"


def _inline(text: str, longest: int | None = _LONGEST) -> str:
    """One line that opens no table cell, no HTML and no link of its own."""
    flat = _flat(text)
    short = flat if longest is None or len(flat) <= longest else flat[: longest - 1] + "…"
    for sign in ("\\", "|", "<", "[", "`", "*"):
        short = short.replace(sign, "\\" + sign)
    return short


def _flat(text: str, longest: int = 2 * LONGEST) -> str:
    return line(text, longest)
