"""junit.xml: each finding is a test case; FAIL is a failure, UNKNOWN an error, so that neither looks like a pass.

Kept to what all readers agree on: Jenkins' schema (jenkins-junit.xsd of its xUnit plugin), GitLab (which names a test
by ``classname`` and ``name``, and shows the failure's text and ``file``) and the common actions on GitHub.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from harness.checks.root_cause import one_line, root_cause
from harness.checks.story import LABELS
from harness.checks.units import clock_s
from harness.printable import for_xml, line
from harness.report.content import more, status_of
from harness.verdict import Finding, Status, Verdict

if TYPE_CHECKING:
    from harness.history.reader import History

_EVIDENCE_ROWS = 30
_MESSAGE = 400
_PART = re.compile(f" ({'|'.join(LABELS)})")


def junit_xml(history: History, verdict: Verdict) -> str:
    run = history.run
    statuses = [status_of(finding) for finding in verdict.findings]
    failures, errors = statuses.count(Status.FAIL), statuses.count(Status.UNKNOWN)
    counts = {"tests": str(len(statuses)), "failures": str(failures), "errors": str(errors)}
    # No test is ever skipped: what could not be judged is an error.
    name = for_xml(run.title or run.experiment or "gpu-harness")
    suites = ET.Element("testsuites", {"name": "gpu-harness", **counts})
    took = f"{max(0.0, clock_s(run.load_end_ns - run.load_start_ns)):.3f}"
    suite = ET.SubElement(suites, "testsuite", {"name": name, "id": "0", **counts, "skipped": "0", "time": took})
    if run.started_utc:
        suite.set("timestamp", for_xml(run.started_utc.removesuffix("Z")))  # always UTC; not all readers know the Z
    properties = ET.SubElement(suite, "properties")
    for key, value in (
        ("verdict", verdict.status.value), ("sentence", verdict.sentence),
        ("root_cause", root_cause(verdict)), ("seed", run.seed), ("target", run.target),
        ("time_scale", run.time_scale), ("commit", run.commit), ("command", run.command),
    ):  # fmt: skip
        ET.SubElement(properties, "property", {"name": key, "value": for_xml(str(value))})
    seen: Counter[str] = Counter()
    for finding in verdict.findings:
        seen[finding.check] += 1
        again = f" ({seen[finding.check]})" if seen[finding.check] > 1 else ""
        _case(suite, verdict, finding, finding.check + again, run.experiment)
    ET.indent(suites, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"


def _case(suite: ET.Element, verdict: Verdict, finding: Finding, name: str, experiment: str) -> None:
    about = {"classname": f"gpu-harness.{finding.role.value}", "name": name, "time": "0"}
    case = ET.SubElement(suite, "testcase", about | ({"file": for_xml(experiment)} if experiment else {}))
    status = status_of(finding)
    sentence = for_xml(finding.sentence + (f" [{finding.because}]" if finding.because else ""))
    if status is not Status.PASS:
        tag = "failure" if status is Status.FAIL else "error"
        # Readers show the message alone in their lists, so it is the cause, on one line.
        trouble = ET.SubElement(case, tag, {"message": for_xml(_line(verdict, finding)), "type": status.value})
        rows = [f"{row.ref}: {row.text}" for row in finding.evidence[:_EVIDENCE_ROWS]]
        told = _PART.sub(r"\n\1", finding.story)
        texts = (sentence, told, *rows, more(finding, _EVIDENCE_ROWS))
        trouble.text = for_xml("\n".join(text for text in texts if text))
    ET.SubElement(case, "system-out").text = sentence


def _line(verdict: Verdict, finding: Finding) -> str:
    return line(one_line(verdict, finding) + (f" [{finding.because}]" if finding.because else ""), _MESSAGE)
