from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.faults.registry import FAULTS
from harness.run.chaos import discover
from harness.run.chaos.command import ActivityOutcome, chaos_command, read_journal


def run(name: str, status: str | None, exception: list[str] | None = None) -> dict[str, Any]:
    entry: dict[str, Any] = {"activity": {"name": name}, "output": None}
    return entry | ({"status": status} if status else {}) | ({"exception": exception} if exception else {})


def journal(tmp_path: Path, **changes: Any) -> Path:
    good = {
        "status": "completed",
        "deviated": False,
        "steady_states": {
            "before": {"steady_state_met": True, "probes": [run("steady", "succeeded")]},
            "after": {"steady_state_met": True, "probes": [run("steady", "succeeded")]},
            "during": [],
        },
        "run": [run("interrupt", "succeeded")],
        "rollbacks": [run("heal", "succeeded")],
    }
    path = tmp_path / "chaos.json"
    path.write_text(json.dumps(good | changes))
    return path


def test_the_command_names_absolute_paths_and_always_rolls_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    argv = chaos_command(Path("e.yaml"), Path("chaos.json"))
    assert argv[:3] == [sys.executable, "-m", "chaostoolkit"]
    assert argv[argv.index("--rollback-strategy") + 1] == "always"
    assert argv[-1] == str(tmp_path / "e.yaml")
    assert argv[argv.index("--journal-path") + 1] == str(tmp_path / "chaos.json")
    assert chaos_command(Path("e.yaml"), Path("j"), Path("/usr/bin/python3"))[0] == "/usr/bin/python3"


def test_a_good_journal(tmp_path: Path) -> None:
    outcome = read_journal(journal(tmp_path))
    assert outcome is not None and (outcome.status, outcome.failed) == ("completed", ())
    assert (outcome.steady_before, outcome.steady_after) == (True, True)
    assert [a.part for a in outcome.activities] == ["before", "method", "after", "rollback"]


def test_a_failed_action_is_found_although_the_run_completed(tmp_path: Path) -> None:
    failed = run("interrupt", "failed", ["chaoslib.exceptions.ActivityFailed: no such node\n"])
    outcome = read_journal(journal(tmp_path, run=[failed]))
    assert outcome is not None and outcome.status == "completed"
    assert outcome.failed == (
        ActivityOutcome("method", "interrupt", "failed", "chaoslib.exceptions.ActivityFailed: no such node"),
    )
    assert "interrupt (method) failed" in outcome.why


def test_an_interrupted_activity_has_no_status_of_its_own(tmp_path: Path) -> None:
    outcome = read_journal(journal(tmp_path, status="interrupted", run=[run("interrupt", None)]))
    assert outcome is not None and [a.status for a in outcome.failed] == ["interrupted"]


def test_a_baseline_that_was_not_met(tmp_path: Path) -> None:
    states = {"before": {"steady_state_met": False, "probes": [run("steady", "succeeded")]}, "after": None}
    outcome = read_journal(journal(tmp_path, steady_states=states, run=[]))
    assert outcome is not None and (outcome.steady_before, outcome.steady_after) == (False, None)
    assert "nothing was injected" in outcome.why


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "null", '{"status": "completed", "run": ['])
def test_half_a_journal_is_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "chaos.json"
    path.write_text(text)
    assert read_journal(path) is None


def test_no_journal_is_none(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "chaos.json") is None


def test_discover_lists_actions_and_probes_with_their_types() -> None:
    found = {
        (a["type"], a["name"]): {x["name"]: x.get("type") for x in a["arguments"]} for a in discover()["activities"]
    }
    assert found["action", "spot_interruption"] == {
        "after_s": "number", "nodes": "object", "notice_s": "number", "rebalance_s": "number",
        "cancel_after_s": "number", "lost_after_s": "number", "one_per_zone": "boolean", "then_out_of_stock": "string",
    }  # fmt: skip
    assert set(found) == {
        *(("action", name) for name in ("heal", *FAULTS)),
        *(("probe", name) for name in ("pods_pending", "replicas_ready", "workload_steady")),
    }


def test_chaos_discover_finds_the_extension_by_the_name_of_the_distribution(tmp_path: Path) -> None:
    found = tmp_path / "discovery.json"
    command = ["-m", "chaostoolkit", "--no-version-check", "--no-log-file", "--settings", os.devnull, "discover"]
    options = ["--no-install", "--discovery-path", str(found), "gpu-harness"]
    subprocess.run([sys.executable, *command, *options], check=True, capture_output=True, cwd=tmp_path)
    activities = {a["name"]: a for a in json.loads(found.read_text())["activities"]}
    assert set(FAULTS) <= set(activities)
    assert all(activity.get("doc") for activity in activities.values())
