"""Writes report.html, junit.xml and summary.md beside the verdict they show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.collector import collector_resting
from harness.replacing import replace_text
from harness.report.junit import junit_xml
from harness.report.page import html_page
from harness.report.summary import summary_md
from harness.verdict import Verdict

if TYPE_CHECKING:
    from harness.history.reader import History

REPORT_FILE, JUNIT_FILE, SUMMARY_FILE = "report.html", "junit.xml", "summary.md"


@collector_resting()
def write_report(run_dir: Path, history: History, verdict: Verdict, plan: Mapping[str, Any]) -> None:
    """``plan`` is the content of plan.json; empty where the run has none."""
    for name, text in (
        (REPORT_FILE, html_page(history, verdict, plan)),
        (JUNIT_FILE, junit_xml(history, verdict)),
        (SUMMARY_FILE, summary_md(history, verdict, plan)),
    ):
        replace_text(run_dir / name, text)
