"""The shipped experiments, run for real once each: their status, and the check it comes from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
from running import Ended, command, processes_naming

pytestmark = pytest.mark.alone
SHORT = Path(__file__).parent / "short"
DEMO = "experiments/spot-interruption-during-burst.yaml"


def run(experiment: str, tmp_path: Path) -> Ended:
    """One repeat is allowed where the machine stalled, and only there: nothing can be said of such a run."""
    for attempt in (1, 2):
        reports = tmp_path / f"reports-{attempt}"
        ended = command("run", experiment, "--plain", "--reports", str(reports), reports=reports)
        stalled = ended.finding("machine_did_not_stall")["status"] != "pass"
        if not stalled:
            break
    return ended


def expect_accounted(ended: Ended) -> None:
    """planned = sum of outcomes, and ``check`` repeats the verdict byte for byte."""
    assert ended.folder is not None
    requests = pd.read_parquet(ended.folder / "history" / "requests.parquet")
    schedule = pd.read_parquet(ended.folder / "schedule.parquet")
    assert len(requests) == len(schedule)
    assert requests["outcome"].notna().all()
    before = (ended.folder / "verdict.json").read_bytes()
    again = command("check", str(ended.folder))
    assert (again.code, (ended.folder / "verdict.json").read_bytes()) == (ended.code, before)


def test_the_demo_passes(tmp_path: Path) -> None:
    ended = run(DEMO, tmp_path)
    assert (ended.code, ended.verdict["status"]) == (0, "pass"), ended.out
    assert ended.finding("pdb")["numbers"]["refused"] >= 1, ended.finding("pdb")
    for check in ("slo", "scale_up", "graceful_drain", "pdb", "gang"):
        assert ended.finding(check)["exercised"] >= 1
    expect_accounted(ended)
    assert ended.folder is not None
    for name in ("report.html", "junit.xml", "summary.md", "chaos.json", "undo.jsonl", "plan.json"):
        assert (ended.folder / name).stat().st_size > 0
    assert processes_naming(str(tmp_path)) == []


def test_a_planted_bug_is_found_in_a_real_run(tmp_path: Path) -> None:
    """In a short one. The negative experiments run in virtual time (tests/matrix), and for real by ``make repeat``."""
    for name in ("extra.yaml", "workload.yaml"):
        shutil.copy(SHORT / name, tmp_path)
    experiment = yaml.safe_load((SHORT / "experiment.yaml").read_text())
    experiment["method"][1]["provider"]["arguments"]["notice_s"] = 140  # time for the whole grace of its pods
    experiment["extensions"][0]["world"]["planted_bugs"] = ["server_aborts_on_sigterm"]
    (tmp_path / "experiment.yaml").write_text(yaml.safe_dump(experiment))
    load = yaml.safe_load((SHORT / "load.yaml").read_text())
    load |= {"longest_stream_s": 60, "arrivals": {"kind": "poisson", "rate_per_s": 8}}
    load["tokens"]["output"]["tokens"] = 150  # so that some are in flight whenever the notice comes
    (tmp_path / "load.yaml").write_text(yaml.safe_dump(load))
    ended = run(str(tmp_path / "experiment.yaml"), tmp_path)
    assert (ended.verdict["status"], ended.code) == ("fail", 1), ended.out
    assert ended.finding("graceful_drain")["judged"] == "fail", ended.out
    assert "aborted on SIGTERM" in ended.finding("graceful_drain")["sentence"], ended.out
    expect_accounted(ended)
