"""``gpu-harness inspect``: exit codes, what is accepted, and what programs read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from harness.commands import run_command_line
from harness.errors import BadInput, ExitCode
from harness.inspection.cluster import kubeconfig_path
from harness.inspection.registry import RULES

HERE = Path(__file__).parent
PLANTED, CLEAN = HERE / "planted", HERE / "clean"


def inspect(*args: object) -> ExitCode:
    return run_command_line(["inspect", *map(str, args)])


def accepting(tmp_path: Path, *lines: str) -> Path:
    text = (PLANTED / "no-prestop.yaml").read_text()
    note = json.dumps("\n".join(lines))
    file = tmp_path / "llm.yaml"
    file.write_text(
        text.replace(
            "namespace: no-prestop}", f"namespace: no-prestop, annotations: {{gpu-harness.dev/accept: {note}}}}}"
        )
    )
    return file  # fmt: skip


def test_clean_is_pass_and_a_problem_is_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(CLEAN) is ExitCode.PASS
    assert "no problem in 11 objects" in capsys.readouterr().out
    assert inspect(PLANTED) is ExitCode.FAIL
    assert "29 errors, 10 warnings in 63 objects" in capsys.readouterr().out
    assert inspect(PLANTED / "no-prestop.yaml") is ExitCode.FAIL
    out = capsys.readouterr().out
    assert f"{PLANTED / 'no-prestop.yaml'}:12 (spec.template.spec.containers[0].lifecycle.preStop)" in out
    for words in ("right:", "do:", "seen:", "vllm-project/vllm#24885", "1 warning in 1 objects"):
        assert words in out
    assert inspect(PLANTED / "no-prestop.yaml", "--fail-on", "error") is ExitCode.PASS
    assert inspect(PLANTED / "no-readiness-probe.yaml", "--fail-on", "error") is ExitCode.FAIL


def test_the_annotation_accepts_with_a_reason_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = accepting(tmp_path, "no-prestop: the gateway waits ten seconds itself")
    assert inspect(file) is ExitCode.PASS
    out = capsys.readouterr().out
    assert "accepted  no-prestop" in out and "because: the gateway waits ten seconds itself" in out
    assert inspect(accepting(tmp_path, "no-prestop:")) is ExitCode.FAIL
    assert "no-prestop is accepted without a reason" in capsys.readouterr().out
    assert inspect(accepting(tmp_path, "no-pre-stop: why not")) is ExitCode.FAIL
    assert 'there is no rule "no-pre-stop"' in capsys.readouterr().out
    assert inspect(accepting(tmp_path, "no-prestop: ours", "grace-by-default: ours too")) is ExitCode.PASS


def test_the_accept_file_accepts_and_says_what_is_idle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "accept.yaml"
    entry = {"rule": "no-prestop", "object": "Deployment/no-prestop/*", "reason": "the gateway waits"}
    file.write_text(yaml.safe_dump({"accept": [entry, {"rule": "pdb-says-both", "reason": "was so"}]}))
    assert inspect(PLANTED / "no-prestop.yaml", "--accept", file) is ExitCode.PASS
    out = capsys.readouterr().out
    assert "because: the gateway waits" in out
    assert "nothing to accept of pdb-says-both on * any more" in out
    entry["object"] = "StatefulSet/*"
    file.write_text(yaml.safe_dump({"accept": [entry]}))
    assert inspect(PLANTED / "no-prestop.yaml", "--accept", file) is ExitCode.FAIL


def test_json_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert inspect(PLANTED / "pdb-blocks-every-drain.yaml", "--output", "json") is ExitCode.FAIL
    found = json.loads(capsys.readouterr().out)
    [finding] = found["findings"]
    assert (finding["rule"], finding["severity"], finding["line"]) == ("pdb-blocks-every-drain", "error", 37)
    assert finding["object"] == "PodDisruptionBudget/pdb-blocks-every-drain/llm"
    assert finding["saw"].startswith("minAvailable: 2 is all of the 2 pods that minReplicas of Horizontal")
    assert len(found["judged"]) + len(found["not_judged"]) == sum(not rule.live_only for rule in RULES.values())
    assert {entry["section"] for entry in found["inventory"]} >= {"autoscalers", "disruption budgets"}


@pytest.mark.parametrize("name", ["gone/junit.xml", "."])
def test_a_junit_file_that_cannot_be_written_is_bad_input(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="--junit cannot be written"):
        inspect(CLEAN, "--junit", tmp_path / name)


def test_junit_has_a_case_for_each_rule(tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    assert inspect(PLANTED / "no-readiness-probe.yaml", "--junit", file) is ExitCode.FAIL
    suites = ET.parse(file).getroot()
    assert (suites.get("failures"), suites.get("skipped"), suites.get("errors")) == ("1", "1", "0")
    cases = {case.get("name"): case for case in suites.iter("testcase")}
    assert set(cases) == {rule.id for rule in RULES.values() if not rule.live_only}
    failure = cases["no-readiness-probe"].find("failure")
    assert failure is not None and "neither readinessProbe nor startupProbe" in str(failure.get("message"))
    assert cases["no-readiness-probe"].get("file") == str(PLANTED / "no-readiness-probe.yaml")
    assert cases["grace-below-longest-stream"].find("skipped") is not None
    assert inspect(CLEAN, "--junit", file) is ExitCode.PASS
    assert ET.parse(file).getroot().get("failures") == "0"


def test_an_experiment_brings_its_manifests_and_its_longest_stream(capsys: pytest.CaptureFixture[str]) -> None:
    experiment = HERE.parents[2] / "experiments" / "negative" / "server-aborts-on-sigterm.yaml"
    assert inspect("--experiment", experiment, "--output", "json") is ExitCode.FAIL
    found = json.loads(capsys.readouterr().out)
    assert "grace-below-longest-stream" in found["judged"]
    assert [f["rule"] for f in found["findings"]] == ["replicas-beside-autoscaler"]


@pytest.mark.parametrize(
    "args, message",
    [
        ((CLEAN, "--kubeconfig", "x"), "cannot be looked at together"),
        ((CLEAN, "--namespace", "x"), "cannot be looked at together"),
        (("--kubeconfig", "none"), "there is no kubeconfig here"),
        ((CLEAN, "--output", "xml"), "'xml' is not one of"),
        ((CLEAN, "--accept", "none.yaml"), "there is no such file"),
    ],
)
def test_what_cannot_be_meant_is_bad_input(args: tuple[object, ...], message: str) -> None:
    with pytest.raises(BadInput) as told:
        inspect(*args)
    assert message in str(told.value)


def test_of_several_kubeconfigs_the_one_with_the_context_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / name for name in ("none", "torn", "a", "b")]
    files[1].write_text("{")
    for file, names, current in ((files[2], ["dev"], None), (files[3], ["prod", "test"], "test")):
        file.write_text(yaml.safe_dump({"contexts": [{"name": name} for name in names], "current-context": current}))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, files)))
    assert [kubeconfig_path(None, context) for context in ("dev", "prod", None)] == [files[2], files[3], files[3]]
    assert kubeconfig_path(None, "nowhere") == files[1]  # which says itself what is wrong with it
    assert kubeconfig_path(files[2], "prod") == files[2]


def test_the_role_of_an_inspection_only_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["rbac", "--inspect", "--namespace", "inference"]) is ExitCode.PASS
    objects = list(yaml.safe_load_all(capsys.readouterr().out))
    rules = [rule for o in objects for rule in o.get("rules", ())]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list"}
    assert not any("secrets" in rule["resources"] for rule in rules)
    for args in ([], ["--namespace", "a"], ["experiments/x.yaml", "--inspect"]):
        with pytest.raises(BadInput, match="give an experiment, or --inspect"):
            run_command_line(["rbac", *args])
