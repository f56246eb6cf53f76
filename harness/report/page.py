"""report.html: one file that needs nothing else, with everything that was not written here escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harness.checks.root_cause import root_cause
from harness.history.scaleup import replicas_that_came
from harness.report import content
from harness.report.content import Cell, Section, Table, show, status_of
from harness.report.figures import cost, tiles
from harness.report.markup import chip, evidence_list, pairs, text_of
from harness.report.moments import what_happened
from harness.report.plotting import LOADER, packed_plotly
from harness.report.script import SCRIPT
from harness.report.story_part import stories
from harness.report.streams import COLUMNS, Trouble, latency_limits, stream_rows, troubles
from harness.report.style import CSS
from harness.report.timeline import timeline
from harness.report.waterfall import REPLICAS, waterfall
from harness.verdict import Finding, Role, Status, Verdict

if TYPE_CHECKING:
    from harness.history.reader import History

EVIDENCE_ROWS = 20
REPLICA_ROWS = 60
_PARTS = (
    ("story", "Story"), ("findings", "Findings"), ("time", "Timeline"), ("scaling", "Scaling"), ("streams", "Streams"),
    ("cost", "Cost"), ("validity", "Validity"), ("run", "Run"),
)  # fmt: skip


def html_page(history: History, verdict: Verdict, plan: Mapping[str, Any]) -> str:
    found = troubles(history, verdict)
    came = replicas_that_came(history)
    data = {
        "timeline": timeline(history, latency_limits(verdict)),
        "waterfall": waterfall(history, came),
        "streams": {"columns": COLUMNS, "rows": stream_rows(history, found), "of": len(history.requests)},
    }
    body = "\n".join(
        [
            _banner(history, verdict, plan, found),
            _nav(),
            _part("story", stories(history, verdict)),
            _part("findings", _findings(history, verdict)),
            _part("time", _timeline_part(), _section(what_happened(history, found))),
            _part("scaling", *_scaling(history, len(came))),
            _part("streams", _streams(history, verdict)),
            _part("cost", _section(cost(history))),
            _part("validity", _validity(history, verdict)),
            _part(
                "run",
                _section(content.faults(history, plan)),
                _section(content.outcomes(history)),
                _section(content.real_and_emulated(history)),
                _section(content.repeat(history), code_column=1),
            ),
            _footer(),
        ]
    )
    title = text_of(f"{verdict.status.value}: {history.run.title or history.run.experiment}", 200)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        f"{packed_plotly()}\n"
        f'<script type="application/json" id="data">{_json(data)}</script>\n'
        f"<script>{LOADER}{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _json(value: object) -> str:
    """Text of the run stands inside a script element, so nothing in it may end that element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e")


def _part(name: str, *parts: str) -> str:
    return f'<div id="{name}">{"".join(parts)}</div>'


def _nav() -> str:
    return "<nav>" + "".join(f'<a href="#{name}">{title}</a>' for name, title in _PARTS) + "</nav>"


def _banner(history: History, verdict: Verdict, plan: Mapping[str, Any], found: list[Trouble]) -> str:
    run = history.run
    early = ""
    if run.ended != "completed":
        early = f'<p class="early">The run ended early ({text_of(run.ended)}): {text_of(run.ended_detail)}</p>'
    cause = "" if verdict.causes and verdict.status is Status.FAIL else root_cause(verdict)
    root = f'<p class="root">{text_of(cause[0].upper() + cause[1:])}.</p>' if cause else ""
    figures = "".join(
        f'<div class="tile"><b>{text_of(value)}</b><span>{text_of(name)}</span><small>{text_of(word)}</small></div>'
        for name, value, word in tiles(history, verdict, found)
    )
    return (
        f'<header class="banner {verdict.status.value}"><h1>{text_of(run.title or run.experiment or "run", 300)}</h1>'
        f'<p class="verdict">{chip(verdict.status)} <span>{text_of(verdict.sentence)}</span></p>{root}{early}'
        f'<div class="tiles">{figures}</div><dl class="facts">{pairs(content.facts(history, plan))}</dl></header>'
    )


def _findings(history: History, verdict: Verdict) -> str:
    checks = "".join(_finding(history, finding) for finding in content.by_role(verdict, Role.CHECK))
    inside = f'<div class="findings">{checks or "<p>No check was asked for.</p>"}</div>'
    return f"<section><h2>Findings</h2>{inside}</section>"


def _validity(history: History, verdict: Verdict) -> str:
    found = content.by_role(verdict, Role.VALIDITY)
    broken = [finding.check for finding in found if status_of(finding) is not Status.PASS]
    lead = f"Not valid: {', '.join(broken)}. No check of it can pass." if broken else "It was: every one of these held."
    inside = "".join(_finding(history, finding) for finding in found)
    return (
        f'<section><h2>Was the run valid?</h2><p class="lead">{text_of(lead)}</p>'
        f'<div class="findings small">{inside}</div></section>'
    )


def _finding(history: History, finding: Finding) -> str:
    because = f'<p class="because">{text_of(finding.because)}</p>' if finding.because else ""
    own = (
        f" The check's own answer was {finding.status.value}."
        if finding.because and finding.status is not finding.judged
        else ""
    )
    numbers = pairs((name, show(value)) for name, value in finding.numbers.items())
    evidence = evidence_list(history, finding.evidence[:EVIDENCE_ROWS], content.more(finding, EVIDENCE_ROWS))
    inside = f'<dl class="numbers"><div><dt>exercised</dt><dd>{finding.exercised}</dd></div>{numbers}</dl>'
    return (
        f'<article class="finding {status_of(finding).value}"><h3>{chip(status_of(finding))} '
        f"<code>{text_of(finding.check)}</code></h3><div><p>{text_of(finding.sentence)}.{own}</p>{because}"
        f"<details><summary>figures and evidence</summary>{inside}{evidence}</details>"
        f"</div></article>"
    )


_NO_DRAWING = "<noscript><p>This needs JavaScript; all figures are in the tables.</p></noscript>"


def _timeline_part() -> str:
    legend = (
        "A coloured band is a fault, from its injection to the end of its own course; a grey one, a time in which the "
        "recorder was blind; dotted lines part the phases. Drag to look closer, double-click to see all again."
    )
    return (
        f'<section><h2>Timeline</h2><p class="lead">{legend}</p><div id="timeline" class="plot" role="img" '
        'aria-label="Requests, TTFT, waiting requests, replicas, pods, GPUs, nodes and budget over time"></div>'
        f"{_NO_DRAWING}</section>"
    )


def _scaling(history: History, came: int) -> Iterable[str]:
    if came:
        which = f"the slowest {REPLICAS} of {came} replicas" if came > REPLICAS else "each replica that came"
        yield (
            f'<section><h2>Scale-up, stage by stage</h2><p class="lead">Where the time of {which} went, from the load '
            "step, or from its predecessor's first step to its end, to its first token.</p>"
            '<div id="waterfall" class="plot" role="img" '
            'aria-label="Stages of each replica; the same is in the tables below"></div></section>'
        )
    for section in content.replica_sections(history):
        yield _section(section, rows=REPLICA_ROWS)


def _streams(history: History, verdict: Verdict) -> str:
    section = content.troubled(history, verdict)
    controls = (
        '<form id="filters" hidden><label>show <select name="trouble"><option value="0">all</option>'
        '<option value="1">late, failed or lost</option><option value="2">failed or lost</option></select></label>'
        '<label>outcome <select name="outcome"><option value="">any</option></select></label>'
        '<label>phase <select name="phase"><option value="">any</option></select></label>'
        '<label>find <input name="words" type="search" placeholder="pod, node, reason"></label>'
        '<span id="matches" aria-live="polite"></span></form>'
    )
    return _section(section, before_table=controls, table_id="requests", always_table=True)


def _section(
    section: Section, code_column: int | None = None, *, rows: int | None = None, before_table: str = "",
    table_id: str = "", always_table: bool = False,
) -> str:  # fmt: skip
    left_out = len(section.table.rows) - rows if section.table and rows is not None else 0
    more = (f"{left_out} more rows are left out.",) if left_out > 0 else ()
    notes = "".join(f"<li>{text_of(note)}</li>" for note in (*section.notes, *more))
    there = section.table is not None and (section.table.rows or always_table)
    table = _table(section.table, code_column, rows, table_id) if section.table and there else ""
    if always_table and not table:
        table = _table(Table(("",)), None, None, table_id)
    return (
        f'<section><h2>{text_of(section.title)}</h2><p class="lead">{text_of(section.lead)}</p>{before_table}{table}'
        + (f'<ul class="notes">{notes}</ul>' if notes else "")
        + "</section>"
    )


def _table(table: Table, code_column: int | None, rows: int | None, table_id: str) -> str:
    head = "".join(f"<th>{text_of(column)}</th>" for column in table.columns)
    headings = f"<thead><tr>{head}</tr></thead>" if any(table.columns) else ""
    body = "".join(f"<tr>{''.join(_cells(row, code_column))}</tr>" for row in table.rows[:rows])
    name = f' id="{table_id}"' if table_id else ""
    return f'<div class="scroll" tabindex="0"><table{name}>{headings}<tbody>{body}</tbody></table></div>'


def _cells(row: Iterable[Cell], code_column: int | None) -> Iterable[str]:
    for number, cell in enumerate(row):
        text = text_of(cell.text)
        if number == code_column:
            text = f"<code>{text}</code>"
        note = f' title="{text_of(cell.note)}"' if cell.note else ""
        classes = [cell.status.value] if cell.status else ["none"] if cell.text in _FAINT else []
        classes += ["long"] if len(cell.text) > _LONG else []
        style = f' class="{" ".join(classes)}"' if classes else ""
        yield f"<td{style}{note}>{text}</td>"


_LONG = 32
_FAINT = frozenset({content.NONE, "not needed", "not measured", "0"})


def _footer() -> str:
    return f'<footer><h2>What the words mean</h2><dl class="words">{pairs(content.DEFINITIONS)}</dl></footer>'
