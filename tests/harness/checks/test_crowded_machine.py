"""What a starved server or client cannot help is unknown, not a fail, also of checks whose fail is its own proof."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from cases import HERE, Case, ask, load
from story import Story

from harness.verdict import Status, merge


def on_a_machine(case: Case, waits: float) -> Case:
    """The same history, from a machine on which the embedded cluster waited so much for a processor."""
    story = Story()
    for second in range(30):
        story.sample(second * story.time_scale, "machine", "run_queue_wait_ratio", waits, process="fakes.world")
    story.stall(0, 0.0)
    samples = pd.concat([case.history.samples, story.build().samples], ignore_index=True)
    return replace(case, history=replace(case.history, samples=samples))


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
