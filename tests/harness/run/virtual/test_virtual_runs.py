"""Whole runs in virtual time: the demo passes, clients keep limits, each end heals. Planted bugs: tests/matrix."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from virtual_runs import DEMO, ROOT, SHORT, Ran, run_virtually, variant

from harness.errors import BadInput
from harness.faults.undo import UNDO_FILE, replay
from harness.run.preparing import prepare
from harness.run.virtual.run import VirtualRun
from harness.run.virtual.script import read_script


def expect_accounted(ran: Ran) -> None:
    requests = ran.history.requests
    assert len(requests) == ran.history.run.planned
    assert requests["outcome"].notna().all()


def test_the_demo_passes_and_says_that_it_was_virtual(tmp_path: Path) -> None:
    ran = run_virtually(DEMO, tmp_path)
    assert ran.verdict.status.value == "pass", ran.verdict.sentence
    assert ran.finding("pdb").numbers["refused"] >= 1  # type: ignore[operator]  # a count
    for check in ("slo", "scale_up", "graceful_drain", "pdb", "gang"):
        assert ran.finding(check).exercised >= 1
    run = ran.history.run
    assert run.target == "embedded-virtual"
    assert any(part.startswith("time (") for part in run.emulated) and any("no Locust" in p for p in run.emulated)
    assert not any("Locust" in part or "HTTP" in part for part in run.real)
    assert run.fidelity == {"apply_objects": "native", "spot_interruption": "emulated"}
    assert (run.undo_planned, run.undo_left) == (2, ())
    expect_accounted(ran)


def test_a_stream_that_falls_silent_ends_by_the_clients_patience(tmp_path: Path) -> None:
    """Three of five servers that abort leave their clients hanging, until the grace ends or the client leaves."""
    profile = tmp_path / "impatient.yaml"
    text = (ROOT / "loadprofiles" / "chat-bursts.yaml").read_text()
    assert "stall_timeout_s: 5" in text
    profile.write_text(text.replace("stall_timeout_s: 5", "stall_timeout_s: 1"))
    experiment = variant(
        DEMO,
        tmp_path,
        world="preset: quick => preset: quick\n      planted_bugs: [server_aborts_on_sigterm]",
        load=f"load: ../loadprofiles/chat-bursts.yaml => load: {profile}",
    )
    ran = run_virtually(experiment, tmp_path)
    stalled = ran.history.requests.query("outcome == 'stalled'")
    assert len(stalled) >= 1 and ran.status("graceful_drain") == "fail"
    waited_ns = stalled["end_ns"] - stalled["last_token_ns"]
    assert (waited_ns == 1_000_000_000).all()
    assert stalled["pod"].notna().all()


def test_a_workload_that_is_not_steady_gets_no_fault(tmp_path: Path) -> None:
    ran = run_virtually(variant(DEMO, tmp_path, probe="ready_min: 4 => ready_min: 5"), tmp_path)
    assert (ran.progress.ended, ran.verdict.status.value) == ("aborted", "unknown")
    assert ran.status("steady_before") == "unknown"
    assert [mark.value for mark in ran.history.marks if mark.name == "steady_state_before"] == ["not_met"]
    assert ran.history.faults == ()


def test_an_interrupted_run_heals_and_stays_unknown(tmp_path: Path) -> None:
    """In the middle of the interruption's notice."""
    tasks = []

    def interrupt(run: VirtualRun) -> None:
        async def once_injected() -> None:
            while not any("spot" in file.read_text() for file in tmp_path.glob("*/*/undo.jsonl")):
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.5)
            run.ask_to_stop(signal.SIGINT)

        tasks.append(asyncio.create_task(once_injected()))

    ran = run_virtually(SHORT, tmp_path, meanwhile=interrupt)
    assert (ran.progress.ended, ran.progress.ended_detail) == ("interrupted", "interrupted by SIGINT")
    assert ran.verdict.status.value == "unknown"
    entries = replay(ran.run_dir.path / UNDO_FILE).entries
    assert [entry.fault_id for entry in entries] == ["apply_objects-1", "spot_interruption-1"]
    assert all(entry.done for entry in entries) and ran.progress.undo_left == ()
    expect_accounted(ran)


def test_a_time_scale_of_one_takes_real_durations(tmp_path: Path) -> None:
    ran = run_virtually(SHORT, tmp_path, time_scale=1)
    assert (ran.progress.ended, ran.status("graceful_drain")) == ("completed", "unknown")  # it has no hypothesis
    assert ran.finding("graceful_drain").status.value == "pass"
    assert (ran.history.run.time_scale, set(ran.history.requests["outcome"])) == (1, {"ok"})
    assert ran.simulated_s > 240


@pytest.mark.parametrize("time_scale", [0.0, -1.0, 5000.0])
def test_a_time_scale_out_of_range_is_bad_input(time_scale: float) -> None:
    with pytest.raises(BadInput, match="--time-scale"):
        prepare(SHORT, seed=1, target="embedded", cut=None, virtual=True, time_scale=time_scale)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        pytest.param(
            "rollbacks:\n => rollbacks:\n  - {type: action, name: shell, provider: {type: process, path: 'true'}}\n",
            "'shell' needs Chaos Toolkit itself",
            id="rollback",
        ),
        pytest.param(
            "tolerance: true => tolerance: {type: regex, pattern: x}", "tolerance of type regex", id="tolerance"
        ),
        pytest.param(
            "method:\n => method:\n  - {type: probe, name: web, provider: {type: http, url: 'http://localhost'}}\n",
            "'web' needs Chaos Toolkit itself",
            id="method",
        ),
    ],
)
def test_what_only_chaos_toolkit_can_do_is_refused_before_the_run(edit: str, said: str, tmp_path: Path) -> None:
    experiment = variant(DEMO, tmp_path, edit=edit)
    prepared = prepare(experiment, seed=1, target="embedded", cut=None, virtual=True)
    with pytest.raises(BadInput, match=said) as refused:
        read_script(prepared.experiment)
    assert "without --virtual" in str(refused.value)


MIX = """
mix:
  stream_share: 0.5
  sessions: {share: 0.3, turns_mean: 3, think_s: {kind: fixed, time_s: 20}}
  hang_ups:
    - {share: 0.2, after_tokens: {kind: fixed, tokens: 5}}
    - {share: 0.1, after_s: {kind: fixed, time_s: 0.05}}
"""


def test_turns_whole_answers_and_hang_ups_end_as_the_load_process_ends_them(tmp_path: Path) -> None:
    profile = tmp_path / "mixed.yaml"
    text = (SHORT.parent / "load.yaml").read_text()
    profile.write_text(text.replace("rate_per_s: 5", "rate_per_s: 40") + MIX)
    experiment = variant(SHORT, tmp_path, load=f"load: load.yaml => load: {profile}")
    for name in ("workload.yaml", "extra.yaml"):
        (tmp_path / name).write_text((SHORT.parent / name).read_text())
    ran = run_virtually(experiment, tmp_path)
    requests = ran.history.requests
    expect_accounted(ran)
    assert set(requests["outcome"]) <= {"ok", "aborted_by_client", "not_sent"}
    whole = requests[~requests["stream"].astype(bool) & (requests["outcome"] == "ok")]
    assert len(whole) > 20 and (whole["output_tokens"] == 20).all() and whole["first_token_ns"].isna().all()
    left = requests[(requests["outcome"] == "aborted_by_client") & (requests["hang_up_tokens"] == 5)]
    assert len(left) > 5 and (left["chunks"] == 5).all()
    by_time = requests[(requests["outcome"] == "aborted_by_client") & (requests["hang_up_ns"] > 0)]
    assert len(by_time) > 5 and (by_time["end_ns"] - by_time["sent_ns"] == 50_000_000).all()
    assert (requests["turn"] > 0).any()
