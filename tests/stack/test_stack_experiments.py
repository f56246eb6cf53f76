"""The experiments on the real stack, where the embedded cluster emulates it: their verdicts, and what the real one did.

Some on each run of the tests; with SHIPPED=all every one of them (about 2 s of CPU each).
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "harness" / "run" / "virtual"))
sys.path.append(str(Path(__file__).parents[1] / "behaviour"))

from bothsides.lives import plays_from_json
from declared import FOLDER, RECORDED, Expected, declared
from histories import compared, wanted_lives
from virtual_runs import run_virtually

from harness.clock import NS_PER_S
from harness.history.recording import Recording
from harness.history.tables import ObjectEventType

EVERY = declared()
EACH_TIME = ("gang-preempted-by-halves", "gangs-compete-bound-one-by-one", "lws-restarts-a-group")
PLAYED = [e for e in EVERY if "embedded" in e.on and (os.environ.get("SHIPPED") == "all" or e.name in EACH_TIME)]


def test_every_experiment_on_the_stack_is_declared_and_every_recording_has_one() -> None:
    assert {e.file for e in EVERY} == set(FOLDER.glob("*.yaml")) | set(FOLDER.glob("negative/*.yaml"))
    assert {file.stem for file in FOLDER.glob("embedded/*.yaml")} <= {e.name for e in EVERY if "embedded" in e.on}
    assert {file.stem for file in RECORDED.glob("*.json")} <= {e.name for e in EVERY if e.agreement}


@pytest.mark.parametrize("expected", PLAYED, ids=lambda e: e.name)
def test_the_embedded_cluster_comes_to_the_declared_verdict_by_the_same_states(
    expected: Expected, tmp_path: Path
) -> None:
    ran = run_virtually(expected.embedded_file, tmp_path)
    assert ran.verdict.status.value == expected.verdict, ran.verdict.sentence
    assert ran.status(expected.check) == expected.verdict
    assert expected.words in ran.finding(expected.check).sentence
    if expected.agreement is not None and expected.recorded.is_file():
        (real,) = plays_from_json(expected.recorded.read_text())
        found = compared(expected.agreement, wanted_lives(expected.agreement, ran.history), real)
        assert found.transitions and not found.differences, "\n".join(found.differences)


def test_another_order_of_states_is_a_difference(tmp_path: Path) -> None:
    ours, other = (e for e in EVERY if e.name in ("gangs-compete", "gangs-compete-bound-one-by-one"))
    assert ours.agreement is not None
    one, two = (wanted_lives(ours.agreement, run_virtually(e.file, tmp_path / e.name).history) for e in (ours, other))
    assert compared(ours.agreement, one, one).agrees
    assert not compared(ours.agreement, one, two).agrees
    nothing = replace(ours.agreement, objects=("Pod of-nobody",))
    assert compared(nothing, {}, {}).differences == ["nothing matches Pod of-nobody"]


@pytest.mark.parametrize("lived_s, differ", [(9, False), (30, True)])
def test_a_pod_that_came_and_went_at_once_counts_on_neither_side(tmp_path: Path, lived_s: float, differ: bool) -> None:
    """As a worker that its StatefulSet makes while the group is being deleted; one that stays is a difference."""
    (expected,) = (e for e in EVERY if e.name == "lws-restarts-a-group")
    assert expected.agreement is not None
    history = run_virtually(expected.file, tmp_path).history
    ours = wanted_lives(expected.agreement, history)
    first = next(e for e in history.objects if e.kind == "Pod" and e.name == "spread-0-1")
    at_ns = history.run.load_start_ns + round(150 / history.run.time_scale * NS_PER_S)
    extra = {**first.object, "metadata": {**first.object["metadata"], "uid": "another"}}
    ends_ns = at_ns + round(lived_s / history.run.time_scale * NS_PER_S)
    more = [
        replace(first, index=10**6, t_ns=at_ns, type=ObjectEventType.ADDED, object=extra),
        replace(first, index=10**6 + 1, t_ns=ends_ns, type=ObjectEventType.DELETED, object=extra),
    ]
    events = sorted([*history.objects, *more], key=lambda e: e.t_ns)
    theirs = wanted_lives(expected.agreement, replace(history, objects=Recording(events)))
    assert bool(compared(expected.agreement, ours, theirs).differences) is differ
