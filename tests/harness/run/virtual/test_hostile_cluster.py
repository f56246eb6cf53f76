"""Objects that others put into the cluster may say anything: the whole run goes on, and what they say is only text."""

from __future__ import annotations

import re
import shutil
from xml.etree import ElementTree as ET

import pytest
import yaml
from virtual_runs import SHORT, Ran, run_virtually

from harness.run.judging import report_run

SAYS = "</script><script>alert(1)</script>\x1b[2J\x1b]0;pwned\x07\r\n# heading\n| cell |\n]]> \u202egnp.exe"
CHECKS = """
      - graceful_drain: {streams_lost_max: 0}
      - capacity: {short_s_max: 10}
      - device: {}
      - recovery: {}
      - scale_down: {}
"""
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\u202e]")


def pod(name: str, labels: dict[str, str], said: str) -> dict[str, object]:
    container = {
        "name": "c", "image": f"x/{said}", "command": [said], "env": [{"name": "A", "value": said}],
        "resources": {"limits": {"nvidia.com/gpu": 4}},
    }  # fmt: skip
    about = {"name": name, "namespace": "inference", "labels": labels, "annotations": {"a": said}}
    spec = {"containers": [container], "nodeSelector": {"nobody": "has-it"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}


def event(name: str, said: str) -> dict[str, object]:
    return {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "inference"},
        "involvedObject": {"kind": "Pod", "namespace": "inference", "name": said}, "type": "Warning",
        "reason": said[:100], "message": said, "source": {"component": said[:60]},
    }  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("hostile")
    for file in SHORT.parent.iterdir():
        shutil.copy(file, folder)
    objects = [
        event("e-1", SAYS), event("e-2", "y" * 300_000), pod("stranger", {"app": SAYS[10:16]}, SAYS),
        pod("llm-hostile", {"app": "llm"}, SAYS), pod("llm-long", {"app": "llm"}, "y" * 100_000),
    ]  # fmt: skip
    (folder / "extra.yaml").write_text(yaml.safe_dump_all(objects))
    experiment = folder / SHORT.name
    text = experiment.read_text()
    assert "\n      - graceful_drain: {streams_lost_max: 0}\n" in text
    experiment.write_text(text.replace("\n      - graceful_drain: {streams_lost_max: 0}\n", CHECKS))
    ran = run_virtually(experiment, folder / "reports")
    report_run(ran.run_dir, ran.history, ran.verdict)
    return ran


def test_the_run_and_each_check_go_on(ran: Ran) -> None:
    assert ran.status("run_complete") == "pass"
    assert [f.sentence for f in ran.verdict.findings if "error" in f.numbers] == []
    told = [event.object for event in ran.history.objects]
    assert any("alert(1)" in str(obj.get("message")) for obj in told)
    assert {"llm-hostile", "llm-long"} <= {str((obj.get("metadata") or {}).get("name")) for obj in told}


def test_what_people_read_shows_it_as_text(ran: Ran) -> None:
    page, summary = (ran.run_dir.path / "report.html").read_text(), (ran.run_dir.path / "summary.md").read_text()
    assert "<script>alert" not in page and not CONTROLS.search(page) and len(page) < 5_000_000
    assert not re.search(r"(?<!\\)<[a-z/!]", summary) and not CONTROLS.search(summary) and len(summary) < 100_000


def test_what_programs_read_is_well_formed(ran: Ran) -> None:
    text = (ran.run_dir.path / "junit.xml").read_text()
    assert len(ET.fromstring(text)[0].findall("testcase")) == len(ran.verdict.findings)
    assert len(text) < 2_000_000
