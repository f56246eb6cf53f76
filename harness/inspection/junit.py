"""An inspection as JUnit: a case for each rule. What was found is its failure, what could not be judged is skipped."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from harness.inspection.inspecting import Inspection
from harness.inspection.printing import summary
from harness.inspection.rule import Rule, Severity
from harness.printable import block, for_xml, line


def junit_xml(inspection: Inspection, least: Severity) -> str:
    """``least``: the severity from which a finding is a failure; one below it is only told."""
    judged = set(inspection.judged)
    rules = [*inspection.judged, *(rule for rule, _ in inspection.not_judged)]
    severe = (Severity.ERROR,) if least is Severity.ERROR else tuple(Severity)
    failed = {f.rule.id for f in inspection.open if f.rule.severity in severe}
    why = {rule.id: reason for rule, reason in inspection.not_judged}
    skipped = [rule for rule in rules if rule not in judged and rule.id not in failed]
    counts = {
        "tests": str(len(rules)), "failures": str(len(failed)), "errors": "0", "skipped": str(len(skipped)),
        "time": "0",
    }  # fmt: skip
    suites = ET.Element("testsuites", {"name": "gpu-harness inspect", **counts})
    suite = ET.SubElement(suites, "testsuite", {"name": for_xml(line(f"inspect {inspection.source}")), **counts})
    for rule in rules:
        _case(suite, inspection, rule, failed=rule.id in failed, why=why.get(rule.id, ""))
    ET.SubElement(suite, "system-out").text = for_xml(summary(inspection))
    ET.indent(suites, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"


def _case(suite: ET.Element, inspection: Inspection, rule: Rule, *, failed: bool, why: str) -> None:
    found = [f for f in inspection.findings if f.rule is rule]
    open_ = [f for f in found if f.accepted is None]
    case = ET.SubElement(
        suite, "testcase", {"classname": f"inspect.{rule.severity.value}", "name": rule.id, "time": "0"}
    )
    if failed:
        first = open_[0]
        if first.sighting.object.document is not None:
            case.set("file", for_xml(first.where.file))
            case.set("line", str(first.where.line or 1))
        message = f"{first.sighting.object.ref}: {first.sighting.saw}"
        failure = ET.SubElement(case, "failure", {"message": for_xml(line(message)), "type": rule.severity.value})
        told = [f"{f.where}: {f.sighting.object.ref}: {f.sighting.saw}; right: {f.right}" for f in open_]
        words = [*told, rule.sentence, f"do: {rule.todo}", f"seen: {rule.incident} ({rule.source})"]
        failure.text = for_xml(block("\n".join(words), 20_000))
    elif why:
        ET.SubElement(case, "skipped", {"message": for_xml(line(why))})
    told = [f"accepted at {f.where}: {f.accepted}" for f in found if f.accepted is not None]
    if not failed:
        told += [f"{f.where}: {f.sighting.object.ref}: {f.sighting.saw}" for f in open_]
    if told:
        ET.SubElement(case, "system-out").text = for_xml(block("\n".join(told), 20_000))
