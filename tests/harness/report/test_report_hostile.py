"""Whatever a pod, an error or a model says is read as text: in the page, the summary, junit.xml and on a terminal."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
from demo import demo
from rich.console import Console

from harness.checks.judge import VALIDITY, judge
from harness.history.reader import History
from harness.printable import LONGEST, block, line
from harness.report.junit import junit_xml
from harness.report.page import html_page
from harness.report.summary import summary_md
from harness.run.explaining import print_finding
from harness.run.judging import print_verdict
from harness.spec.checks import GracefulDrainSpec
from harness.verdict import Verdict

HOSTILE = {
    "html": '</script><script>alert(1)</script><img src="http://evil/" onerror=alert(2)>" onmouseover="x',
    "ansi": "\x1b[2J\x1b]0;pwned\x07red\x1b[31m",
    "lines": "a\r\n\n# heading\n| cell |\n```\n<!-- ",
    "markdown": "[click](http://evil) ![i](http://evil/i.png) **b** `c` <b> | x",
    "xml": "]]> <!CDATA[ &lol; \x00\x0b\ufffe\ud800",
    "direction": "\u202egnp.exe\u2066\u200b",
    "long": "x" * 1_000_000,
    "plotly": '<a href="javascript:alert(1)">x</a> %{y}',
}


def poisoned(text: str) -> tuple[History, Verdict]:
    """The cut demo with ``text`` wherever a cluster or a model has a word."""
    history = demo(cut=3)
    cell = text[:5000].encode("utf-8", "replace").decode()  # no file can hold half of a surrogate pair
    table = history.requests.assign(reason=cell, pod="llm-a", node=cell)
    faults = tuple(replace(f, fault_id=text, detail=text, targets=(text,)) for f in history.faults)
    run = replace(history.run, title=text, command=text, ended="aborted", ended_detail=text, target=text, commit=text)
    verdict = judge(history, [GracefulDrainSpec()])
    findings = tuple(
        replace(
            f, sentence=text, because=text, story=text, numbers={text[:99]: text},
            evidence=tuple(replace(e, text=text, ref=text, facts=e.facts | {text[:99]: text}) for e in f.evidence),
        )
        for f in verdict.findings
    )  # fmt: skip
    return (
        replace(history, requests=table, faults=faults, run=run),
        replace(verdict, sentence=text, findings=findings),
    )


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.attributes: set[str] = set()
        self.inside = ""
        self.data = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.inside = str(dict(attrs).get("id") or tag)

    def handle_data(self, data: str) -> None:
        self.data += data if self.inside == "data" else ""


@pytest.fixture(scope="module")
def harmless() -> Tags:
    return Tags(html_page(*poisoned("a"), {}))


@pytest.mark.parametrize("kind", HOSTILE)
def test_in_the_page(kind: str, harmless: Tags) -> None:
    html = html_page(*poisoned(HOSTILE[kind]), {})
    tags = Tags(html)
    assert tags.seen.count("script") == 3 and set(tags.seen) == set(harmless.seen)
    assert tags.attributes <= harmless.attributes | {"title"}
    assert json.loads(tags.data)
    assert len(html) < 5_000_000
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e\u2066]", html)


@pytest.mark.parametrize("kind", HOSTILE)
def test_in_junit(kind: str) -> None:
    text = junit_xml(*poisoned(HOSTILE[kind]))
    assert len(ET.fromstring(text)[0].findall("testcase")) == 1 + len(VALIDITY)
    assert len(text) < 2_000_000


@pytest.mark.parametrize("kind", HOSTILE)
def test_in_the_summary(kind: str) -> None:
    text = summary_md(*poisoned(HOSTILE[kind]), {})
    assert len(text) < 100_000
    assert all(c == "\n" or c.isprintable() for c in text)
    spoken = "\n".join(part for part in text.split("\n") if not part.startswith("Repeat: `"))  # a span of code
    assert not re.search(r"(?<!\\)<[a-z/!]|(?<!\\)\[", spoken)
    assert [part for part in text.split("\n") if part.startswith("# ")][1:] == []
    for table in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table.strip().splitlines()}
        assert len(widths) == 1, table


@pytest.mark.parametrize("kind", HOSTILE)
def test_on_a_terminal(kind: str) -> None:
    history, verdict = poisoned(HOSTILE[kind])
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True, color_system=None)
    print_verdict(verdict, console)
    for finding in verdict.findings:
        print_finding(console, history, finding)
    text = out.getvalue()
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e\u2066]", text)
    assert len(text) < 2_000_000


def test_what_is_cut_says_how_long_it_was() -> None:
    assert line("x" * 5000) == "x" * LONGEST + "… (5000 characters)"
    assert line("a\nb\tc") == "a b c" and block("a\nb") == "a\nb"
    assert line("né 漢字 ✔") == "né 漢字 ✔"
