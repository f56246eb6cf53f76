from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import plotly.graph_objects as go
import pytest
from demo import demo
from story import Story, write_run

from harness.checks.judge import judge
from harness.history.reader import History
from harness.history.tables import Outcome
from harness.report import content
from harness.report.junit import junit_xml
from harness.report.lanes import GPU_STATES, NODE_STATES, POD_STATES, count_over_time
from harness.report.page import html_page
from harness.report.summary import summary_md
from harness.report.timeline import timeline
from harness.report.write import write_report
from harness.spec.checks import CheckSpec, GangSpec, GracefulDrainSpec, PdbSpec, ScaleUpSpec, SloSpec
from harness.verdict import Status, Verdict

SPECS: tuple[CheckSpec, ...] = (
    SloSpec.model_validate({"ttft_ms_p95": 3000, "tpot_ms_p95": 400, "good_ratio_min": 0.95}),
    ScaleUpSpec(ready_s_max=300.0),
    GracefulDrainSpec(),
    PdbSpec(),
    GangSpec(atomicity_s_max=60.0),
)
PLAN = {"faults": [{}, {}], "schedule": {"stats": {"peak_to_mean": 4.2, "peak_per_s": 24}}}


@pytest.fixture(scope="module")
def good() -> tuple[History, Verdict]:
    history = demo()
    return history, judge(history, SPECS)


@pytest.fixture(scope="module")
def bad() -> tuple[History, Verdict]:
    history = demo(cut=3)
    return history, judge(history, SPECS)


class Page(HTMLParser):
    """What a browser would load, and the text outside of scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.data = ""
        self.texts: list[str] = []
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.tags.append(tag)
        urls = [str(known[key]) for key in ("src", "href", "data", "action") if known.get(key)]
        self.loads += [url for url in urls if not url.startswith("#")]
        self._inside = known.get("id") or tag if tag in ("script", "style") else ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = "" if tag in ("script", "style") else self._inside

    def handle_data(self, data: str) -> None:
        if self._inside == "data":
            self.data += data
        elif not self._inside:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def test_the_demo_story_passes_and_its_cut_twin_fails(
    good: tuple[History, Verdict], bad: tuple[History, Verdict]
) -> None:
    assert good[1].status is Status.PASS, good[1].sentence
    assert bad[1].status is Status.FAIL
    assert bad[1].sentence.startswith("the model server cut 3 streams on SIGTERM")


def test_the_page_loads_nothing(good: tuple[History, Verdict]) -> None:
    page = Page(html_page(*good, PLAN))
    assert page.loads == []
    assert not {"link", "img", "iframe", "base"} & set(page.tags)


def test_the_verdict_comes_first_and_every_finding_has_its_sentence(bad: tuple[History, Verdict]) -> None:
    history, verdict = bad
    text = Page(html_page(history, verdict, PLAN)).text
    parts = (
        "✖ fail",
        "Promised:",
        "surely 95%",
        "A coloured band",
        "What happened Times are",
        "Lost or late",
        "Was the run valid?",
        "How to repeat",
    )
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    for finding in verdict.findings:
        assert finding.sentence in text
        assert finding.check in text


def test_lost_requests_are_named_with_pod_node_and_cause(bad: tuple[History, Verdict]) -> None:
    section = content.troubled(*bad)
    assert section.table is not None
    first = [cell.text for cell in section.table.rows[0]]
    assert first[3:7] == ["reset_mid_stream", "aborted on SIGTERM", "llm-a", "spot-1"]
    assert section.lead.startswith("3 lost, 0 failed otherwise")


def test_every_added_replica_has_all_its_marks_or_a_reason(good: tuple[History, Verdict]) -> None:
    added, replaced = content.replica_sections(good[0])
    assert added.table is not None and replaced.table is not None
    assert [row[0].text for row in added.table.rows] == ["llm-e", "llm-f", "llm-g"]
    assert [row[0].text for row in replaced.table.rows] == ["llm-h", "llm-i", "llm-j"]
    for row in (*added.table.rows, *replaced.table.rows):
        for cell in row:
            assert cell.text
            assert cell.note or cell.text != "not needed"
    assert any("T2, T3, T4, T5 not needed by llm-e: there was room on spot-1" in note for note in added.notes)


def test_what_was_real_how_to_repeat_and_both_units_are_said(good: tuple[History, Verdict]) -> None:
    text = Page(html_page(*good, PLAN)).text
    for part in (
        "600 scenario s = 40.0 s on the clock", "15 (one clock second is 15 scenario seconds)", "Locust, Chaos Toolkit",
        "control plane, nodes, cloud", "gpu-harness run story.yaml --seed 7", "peak 24 per second, 4.2 times the mean",
        "TPOT", "spot_interruption-1",
    ):  # fmt: skip
        assert part in text, part


def test_text_of_the_run_never_becomes_markup(good: tuple[History, Verdict]) -> None:
    history, verdict = good
    evil = '</script><script>alert(1)</script><img src="http://evil/">'
    run = replace(history.run, title=evil, command=evil, ended="aborted", ended_detail=evil, target=evil)
    faults = tuple(replace(fault, fault_id=evil) for fault in history.faults)
    findings = tuple(replace(f, sentence=evil, because=evil) for f in verdict.findings)
    told = replace(verdict, sentence=evil, findings=findings)
    page = Page(html_page(replace(history, run=run, faults=faults), told, {}))
    assert page.loads == []
    assert page.tags.count("script") == 3
    assert json.loads(page.data)


def test_the_figure_is_plotlys_own_format(bad: tuple[History, Verdict]) -> None:
    figure = timeline(bad[0], {"ttft_ms": 3000.0})
    go.Figure(figure)  # refuses unknown properties and values
    assert [trace["name"] for trace in figure["data"]] == [
        "offered", "served", "failed", "TTFT", "failed", "waiting", "desired", "ready", *POD_STATES, *GPU_STATES,
        "asked for in vain", *NODE_STATES, "pods to spare",
    ]  # fmt: skip
    assert {trace["xaxis"] for trace in figure["data"]} == {"x"}
    by_name = {(trace["yaxis"], trace["name"]): trace for trace in figure["data"]}
    assert sum(by_name["y", "offered"]["y"]) == len(bad[0].requests)
    assert len(by_name["y2", "failed"]["x"]) == 3
    ready = by_name["y4", "ready"]["y"]
    assert (ready[0], max(ready), by_name["y4", "desired"]["y"][-1]) == (4, 7, 7)
    assert min(by_name["y8", "pods to spare"]["y"]) == 0
    band = next(shape for shape in figure["layout"]["shapes"] if shape["type"] == "rect")
    assert (band["x0"], band["x1"]) == (320.0, 395.0)


def test_a_count_over_time_starts_with_what_was_there() -> None:
    story = Story()
    story.node("a")
    story.node("b", 100)
    story.node_gone("a", 200)
    from harness.history.lives import lives

    history = story.build()
    levels = count_over_time(lives(history.objects, "Node"), lambda node: True, story.ns(0), story.ns(300))
    assert levels == [(story.ns(0), 1), (story.ns(100), 2), (story.ns(200), 1), (story.ns(300), 1)]


def test_junit_counts_fail_as_failure_and_unknown_as_error(bad: tuple[History, Verdict]) -> None:
    history, verdict = bad
    findings = [replace(f, judged=Status.UNKNOWN) if f.check == "slo" else f for f in verdict.findings]
    suite = ET.fromstring(junit_xml(history, replace(verdict, findings=tuple(findings))))[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("15", "1", "1")
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    failure = cases["graceful_drain"].find("failure")
    assert failure is not None and "aborted on SIGTERM" in str(failure.text)
    assert cases["slo"].find("error") is not None
    assert cases["pdb"].find("failure") is None


JENKINS: dict[str, tuple[set[str], set[str], list[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, set(), ["testsuite"]),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id", "package"}
        | {"group", "url", "version", "file", "log"},
        {"name", "tests"},
        ["properties", "testcase", "system-out", "system-err"],
    ),
    "properties": (set(), set(), ["property"]),
    "property": ({"name", "value"}, {"name", "value"}, []),
    "testcase": (
        {"name", "assertions", "time", "classname", "status", "group", "file", "line"},
        {"name"},
        ["skipped", "error", "failure", "system-out", "system-err"],
    ),
    "failure": ({"message", "type"}, set(), []),
    "error": ({"message", "type"}, set(), []),
    "system-out": (set(), set(), []),
}
"""What jenkins-junit.xsd allows of an element: attributes, those it must have, and its children in their order."""


def expect_jenkins(element: ET.Element) -> None:
    allowed, needed, children = JENKINS[element.tag]
    assert needed <= set(element.attrib) <= allowed, element.tag
    assert [c.tag for c in element] == sorted((c.tag for c in element), key=children.index), element.tag
    assert children or not (element.text or "").strip() or element.tag in ("failure", "error", "system-out")
    for child in element:
        expect_jenkins(child)


@pytest.mark.parametrize("asked", [SPECS, (SPECS[0], SPECS[0]), ()], ids=["once", "a check twice", "nothing"])
def test_junit_is_what_jenkins_gitlab_and_github_read(asked: tuple[CheckSpec, ...]) -> None:
    history = demo(cut=3)
    root = ET.fromstring(junit_xml(history, judge(history, asked)))
    expect_jenkins(root)
    (suite,) = root
    cases = suite.findall("testcase")
    names = [(case.get("classname"), case.get("name")) for case in cases]
    assert len(set(names)) == len(cases) == int(suite.get("tests") or 0)
    for counted, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(suite.get(counted) or 0) == len(suite.findall(f"testcase/{tag}"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp") or "")
    assert all(float(case.get("time") or "x") >= 0 and case.get("file") == "story.yaml" for case in cases)


def test_junit_survives_control_characters(good: tuple[History, Verdict]) -> None:
    history, verdict = good
    ET.fromstring(junit_xml(history, replace(verdict, sentence="\x1b[31m<&>\x00")))


def test_the_summary_fits_a_job_page_and_its_tables_hold(bad: tuple[History, Verdict]) -> None:
    history, verdict = bad
    findings = (replace(verdict.findings[0], sentence="a | b\n<script>"), *verdict.findings[1:])
    text = summary_md(history, replace(verdict, findings=findings), PLAN)
    assert text.startswith("# ✖ fail: A spot interruption")
    assert "a \\| b \\<script>" in text
    assert len(text) < 20_000
    for table in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.strip().splitlines()}
        assert len(widths) == 1, table


def test_the_tables_say_no_more_than_the_history() -> None:
    empty = History()
    nothing = judge(empty, SPECS)
    assert content.troubled(empty, nothing).lead == "Not known: the history has no request."
    assert content.faults(empty, PLAN).lead.startswith("0 of 2 planned")
    story = Story()
    story.request(100, None, Outcome.HTTP_5XX)
    refused = story.build()
    refused = replace(refused, requests=refused.requests.assign(status=503))
    verdict = judge(refused, SPECS)
    assert next(f for f in verdict.findings if f.check == "graceful_drain").numbers["streams_lost"] == 0
    assert content.troubled(refused, verdict).lead.startswith("0 lost, 1 failed otherwise")


def test_no_line_or_control_character_of_the_run_breaks_the_summary(bad: tuple[History, Verdict]) -> None:
    history = replace(bad[0], run=replace(bad[0].run, command="run a\n| b |", title="x\x1b[31m\x00y"))
    text = summary_md(history, bad[1], PLAN)
    assert "Repeat: `run a | b |`" in text
    assert all(c == "\n" or c.isprintable() for c in text)


def test_a_run_of_which_nothing_is_known_has_a_report_too(tmp_path: Path) -> None:
    write_report(tmp_path, History(), judge(History(), SPECS), {})
    for name in ("report.html", "junit.xml", "summary.md"):
        assert (tmp_path / name).stat().st_size > 0


def test_a_report_from_the_files_is_the_same(good: tuple[History, Verdict], tmp_path: Path) -> None:
    history, verdict = good
    run_dir = write_run(history, tmp_path)
    assert html_page(History.load(run_dir), verdict, PLAN) == html_page(history, verdict, PLAN)
