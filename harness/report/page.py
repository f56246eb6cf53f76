"""report.html: one file that needs nothing else, with everything that was not written here escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from harness.checks.units import clock_s, scenario_s
from harness.report import content
from harness.report.content import Cell, Section, Table, show, status_of
from harness.report.style import CSS, SCRIPT
from harness.report.timeline import timeline
from harness.verdict import Evidence, Finding, Role, Status, Verdict

if TYPE_CHECKING:
    from harness.history.reader import History

EVIDENCE_ROWS = 60


def html_page(history: History, verdict: Verdict, plan: Mapping[str, Any]) -> str:
    # Imported here: only the page needs the five megabytes of plotly.js.
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]  # plotly ships no types

    figure = timeline(history, content.latency_limits(verdict))
    added, replaced = content.replica_sections(history)
    body = "\n".join(
        [
            _banner(history, verdict, plan),
            _findings(history, verdict),
            _timeline_part(history),
            _section(content.troubled(history, verdict)),
            _section(added),
            _section(replaced),
            _section(content.faults(history, plan)),
            _section(content.outcomes(history)),
            _section(content.real_and_emulated(history)),
            _section(content.repeat(history), code_column=1),
            _footer(),
        ]
    )
    title = escape(f"{verdict.status.value}: {history.run.title or history.run.experiment}")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        f"<script>{get_plotlyjs()}</script>\n"
        f'<script type="application/json" id="figure">{_json(figure)}</script>\n'
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _json(value: object) -> str:
    """Text of the run stands inside a script element, so nothing in it may end that element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e")


def _chip(status: Status) -> str:
    return f'<span class="chip {status.value}">{content.SYMBOLS[status]} {status.value}</span>'


def _banner(history: History, verdict: Verdict, plan: Mapping[str, Any]) -> str:
    run = history.run
    facts = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in content.facts(history, plan))
    early = ""
    if run.ended != "completed":
        early = f'<p class="early">The run ended early ({escape(run.ended)}): {escape(run.ended_detail)}</p>'
    return (
        f'<header class="banner {verdict.status.value}"><h1>{escape(run.title or run.experiment or "run")}</h1>'
        f'<p class="verdict">{_chip(verdict.status)} <span>{escape(verdict.sentence)}</span></p>{early}'
        f'<dl class="facts">{facts}</dl></header>'
    )


def _findings(history: History, verdict: Verdict) -> str:
    checks = "".join(_finding(history, finding) for finding in content.by_role(verdict, Role.CHECK))
    validity = "".join(_finding(history, finding) for finding in content.by_role(verdict, Role.VALIDITY))
    return (
        f'<section><h2>Findings</h2><div class="findings">{checks or "<p>No check was asked for.</p>"}</div>'
        f'<h3>Was the run valid?</h3><div class="findings small">{validity}</div></section>'
    )


def _finding(history: History, finding: Finding) -> str:
    because = f'<p class="because">{escape(finding.because)}</p>' if finding.because else ""
    story = f'<p class="story">{escape(finding.story)}</p>' if finding.story else ""
    own = (
        f" The check's own answer was {finding.status.value}."
        if finding.because and finding.status is not finding.judged
        else ""
    )
    numbers = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(show(v))}</dd></div>" for k, v in finding.numbers.items())
    inside = f'<dl class="numbers"><div><dt>exercised</dt><dd>{finding.exercised}</dd></div>{numbers}</dl>'
    return (
        f'<article class="finding {status_of(finding).value}"><h3>{_chip(status_of(finding))} '
        f"<code>{escape(finding.check)}</code></h3><div><p>{escape(finding.sentence)}.{escape(own)}</p>{because}{story}"
        f"<details><summary>figures and evidence</summary>{inside}{_evidence(history, finding.evidence)}</details>"
        f"</div></article>"
    )


def _evidence(history: History, evidence: tuple[Evidence, ...]) -> str:
    if not evidence:
        return ""
    lines = "".join(
        f"<li><code>{escape(row.ref)}</code> {escape(_when(history, row.t_ns))}{escape(row.text)}</li>"
        for row in evidence[:EVIDENCE_ROWS]
    )
    more = len(evidence) - EVIDENCE_ROWS
    rest = f"<li>{more} more in verdict.json</li>" if more > 0 else ""
    return f'<ul class="evidence">{lines}{rest}</ul>'


def _when(history: History, t_ns: int | None) -> str:
    if t_ns is None:
        return ""
    since = t_ns - history.run.load_start_ns
    return f"at {scenario_s(since, history.run.time_scale):.1f} s ({clock_s(since):.2f} s clock): "


def _timeline_part(history: History) -> str:
    legend = (
        "A coloured band is a fault, from its injection to the end of its own course; dotted lines part the phases. "
        "Drag to look closer, double-click to see all again."
    )
    return (
        f'<section><h2>Timeline</h2><p class="lead">{escape(legend)}</p><div id="timeline" role="img" '
        f'aria-label="Rates, TTFT, replicas, nodes and waiting requests over time"></div>'
        f"<noscript><p>The timeline needs JavaScript; all figures are in the tables.</p></noscript></section>"
    )


def _section(section: Section, code_column: int | None = None) -> str:
    notes = "".join(f"<li>{escape(note)}</li>" for note in section.notes)
    table = _table(section.table, code_column) if section.table and section.table.rows else ""
    return (
        f'<section><h2>{escape(section.title)}</h2><p class="lead">{escape(section.lead)}</p>{table}'
        + (f'<ul class="notes">{notes}</ul>' if notes else "")
        + "</section>"
    )


def _table(table: Table, code_column: int | None) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    headings = f"<thead><tr>{head}</tr></thead>" if any(table.columns) else ""
    body = "".join(f"<tr>{''.join(_cells(row, code_column))}</tr>" for row in table.rows)
    return f'<div class="scroll" tabindex="0"><table>{headings}<tbody>{body}</tbody></table></div>'


def _cells(row: Iterable[Cell], code_column: int | None) -> Iterable[str]:
    for number, cell in enumerate(row):
        text = escape(cell.text)
        if number == code_column:
            text = f"<code>{text}</code>"
        note = f' title="{escape(cell.note, quote=True)}"' if cell.note else ""
        classes = [cell.status.value] if cell.status else ["none"] if cell.text in _FAINT else []
        classes += ["long"] if len(cell.text) > _LONG else []
        style = f' class="{" ".join(classes)}"' if classes else ""
        yield f"<td{style}{note}>{text}</td>"


_LONG = 32
_FAINT = frozenset({content.NONE, "not needed", "not measured", "0"})


def _footer() -> str:
    lines = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in content.DEFINITIONS)
    return f'<footer><h2>What the words mean</h2><dl class="words">{lines}</dl></footer>'
