from __future__ import annotations

import numpy as np
import pytest

from harness.faults.catalogue.load import ClientHangUps, FlashCrowd, LongPrompts, TenantFlood
from harness.faults.catalogue.pause_load import PauseLoad
from harness.faults.fault import Fault
from harness.plan.load_faults import with_load_faults
from harness.plan.schedule import Schedule

SCALE, SECOND = 10.0, 1_000_000_000
CROWD = FlashCrowd(after_s=100, hold_s=50, added_per_s=40.0)


def steady(rows: int = 80) -> Schedule:
    """Four requests a clock second for twenty, each of another length."""
    t_ns = np.arange(rows, dtype=np.int64) * (SECOND // 4)
    prompt, output = np.arange(100, 100 + rows), np.arange(10, 10 + rows)
    return Schedule(t_ns, prompt, output, np.full(rows, "default"), np.full(rows, ""))


def planned(*faults: tuple[str, Fault], seed: int = 1) -> Schedule:
    return with_load_faults(steady(), faults, SCALE, seed)


def test_a_crowd_comes_while_its_fault_lasts_and_is_named_after_it() -> None:
    schedule = planned(("flash_crowd-1", CROWD))
    crowd = schedule.tenant == "flash_crowd-1"
    assert schedule.t_ns[crowd].min() >= 10 * SECOND and schedule.t_ns[crowd].max() < 15 * SECOND
    assert 150 < crowd.sum() < 250  # 40 a clock second for five of them
    assert (np.diff(schedule.t_ns) >= 0).all()
    assert schedule.steps_ns == (0, 10 * SECOND)


def test_the_others_stay_as_they_were() -> None:
    schedule, before = planned(("flash_crowd-1", CROWD)), steady()
    others = schedule.tenant == "default"
    assert (schedule.t_ns[others] == before.t_ns).all()
    assert (schedule.prompt_tokens[others] == before.prompt_tokens).all()


def test_a_request_of_the_crowd_is_as_long_as_some_request_that_comes_anyway() -> None:
    schedule = planned(("flash_crowd-1", CROWD))
    crowd = schedule.tenant == "flash_crowd-1"
    assert (schedule.prompt_tokens[crowd] - schedule.output_tokens[crowd] == 90).all()


def test_the_same_seed_plans_the_same_crowd_and_another_seed_another() -> None:
    one, again, other = (planned(("flash_crowd-1", CROWD), seed=seed) for seed in (1, 1, 2))
    assert one.canonical_bytes() == again.canonical_bytes() != other.canonical_bytes()


def test_one_more_fault_changes_nothing_of_the_first() -> None:
    flood = TenantFlood(after_s=20, hold_s=30, added_per_s=5.0, tenant="batch", priority=7)
    alone, both = planned(("flash_crowd-1", CROWD)), planned(("tenant_flood-1", flood), ("flash_crowd-1", CROWD))
    crowd = [s.t_ns[s.tenant == "flash_crowd-1"].tolist() for s in (alone, both)]
    assert crowd[0] == crowd[1]
    assert both.more is not None and set(both.more.priority[both.tenant == "batch"].tolist()) == {7}


def test_long_prompts_have_their_length() -> None:
    schedule = planned(("long_prompts-1", LongPrompts(after_s=10, hold_s=60, added_per_s=4.0, prompt_tokens=6000)))
    assert set(schedule.prompt_tokens[schedule.tenant == "long_prompts-1"].tolist()) == {6000}


def test_clients_hang_up_only_meanwhile_and_no_request_is_added() -> None:
    schedule = planned(("client_hang_ups-1", ClientHangUps(after_s=50, hold_s=100, ratio=0.5, after_tokens=3)))
    assert schedule.more is not None and len(schedule) == 80
    leaves = schedule.more.hang_up_tokens == 3
    inside = (schedule.t_ns >= 5 * SECOND) & (schedule.t_ns < 15 * SECOND)
    assert not leaves[~inside].any() and 10 <= leaves.sum() <= 30


def test_a_fault_of_something_else_leaves_the_schedule_as_it_is() -> None:
    assert planned(("pause_load-1", PauseLoad(after_s=1, hold_s=1))).canonical_bytes() == steady().canonical_bytes()


@pytest.mark.parametrize("rate", [0.0, -1.0])
def test_a_crowd_of_nobody_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="greater than 0"):
        FlashCrowd(after_s=1, hold_s=1, added_per_s=rate)
