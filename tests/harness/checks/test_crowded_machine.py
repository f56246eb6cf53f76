"""What a starved server or client cannot help is unknown, not a fail, also of checks whose fail is its own proof."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from cases import HERE, Case, ask, load
from story import Story

from harness.history.tables import Outcome
from harness.verdict import Status, merge


def on_a_machine(case: Case, waits: float) -> Case:
    """The same history, from a machine on which the embedded cluster waited so much for a processor."""
    story = Story()
    for second in range(30):
        story.sample(second * story.time_scale, "machine", "run_queue_wait_ratio", waits, process="fakes.world")
    story.stall(0, 0.0)
    samples = pd.concat([case.history.samples, story.build().samples], ignore_index=True)
    return replace(case, history=replace(case.history, samples=samples))


def cut(outcome: Outcome, at_s: float) -> Case:
    """A stream that ended so, so long after its pod was asked to go; preStop is 20 s."""
    story = Story()
    story.node("spot-1", pool="spot")
    story.pod("llm-a", "spot-1", grace_s=100, pre_stop_s=20)
    story.request(300, "llm-a", outcome, lasts_s=10 + at_s)
    story.evict(310, "llm-a")
    story.end(390, "llm-a")
    return Case(story.build(), (), (), {"streams_lost_max": 0}, 0)


@pytest.mark.parametrize(
    ("outcome", "at_s", "judged"),
    [
        pytest.param(Outcome.ABORTED, 20.5, Status.FAIL, id="it-says-so-at-once"),
        pytest.param(Outcome.ERROR_IN_STREAM, 20.5, Status.FAIL, id="in-other-words"),
        pytest.param(Outcome.ABORTED, 70, Status.UNKNOWN, id="after-a-time-that-a-starved-one-may-have-needed"),
        pytest.param(Outcome.RESET_MID_STREAM, 20.5, Status.UNKNOWN, id="without-a-word"),
    ],
)
def test_what_a_server_says_as_it_is_told_to_stop_is_no_matter_of_time(
    outcome: Outcome, at_s: float, judged: Status
) -> None:
    case = on_a_machine(cut(outcome, at_s), 0.9)
    finding = ask("graceful_drain", case)
    assert finding.status is Status.FAIL
    assert merge([finding, ask("machine_did_not_stall", case)]).findings[0].judged is judged


@pytest.mark.parametrize(("waits", "judged"), [(0.2, Status.FAIL), (0.9, Status.UNKNOWN)])
@pytest.mark.parametrize(
    ("check", "kept"),
    [
        ("graceful_drain", "bad-killed-at-grace-end"),
        ("scale_down", "bad-stream-lost-on-the-way"),
        ("scale_up", "bad-too-late"),
    ],
)
def test_a_fail_is_the_clusters_only_where_its_processes_had_a_processor(
    check: str, kept: str, waits: float, judged: Status
) -> None:
    case = on_a_machine(load(HERE / check / f"{kept}.py"), waits)
    finding = ask(check, case)
    assert finding.status is Status.FAIL
    verdict = merge([finding, ask("machine_did_not_stall", case)])
    assert verdict.findings[0].judged is judged
