"""The smallest pieces of report.html: escaped text, a status, pairs, evidence with its moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from harness.checks.units import clock_s, scenario_s
from harness.printable import block
from harness.report.content import SYMBOLS
from harness.verdict import Evidence, Status

if TYPE_CHECKING:
    from harness.history.reader import History


def text_of(text: str, longest: int = 2_000) -> str:
    """As text of the page: no markup, nothing that turns or hides it, not too long."""
    return escape(block(text, longest), quote=True)


def chip(status: Status) -> str:
    return f'<span class="chip {status.value}">{SYMBOLS[status]} {status.value}</span>'


def pairs(items: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<div><dt>{text_of(k)}</dt><dd>{text_of(v)}</dd></div>" for k, v in items)


def evidence_list(history: History, rows: Sequence[Evidence], rest: str = "") -> str:
    if not rows:
        return ""
    lines = "".join(
        f"<li><code>{text_of(row.ref)}</code> {text_of(_when(history, row.t_ns))}{text_of(row.text)}</li>"
        for row in rows
    )
    return f'<ul class="evidence">{lines}{f"<li>{text_of(rest)}</li>" if rest else ""}</ul>'


def _when(history: History, t_ns: int | None) -> str:
    if t_ns is None:
        return ""
    since = t_ns - history.run.load_start_ns
    return f"at {scenario_s(since, history.run.time_scale):.1f} s ({clock_s(since):.2f} s clock): "
