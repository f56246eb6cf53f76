"""How many nodes the budgets of a NodePool let go: for which reason, and when."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fakes.controllers.karpenter.nodepools import DRIFTED, EMPTY, UNLIMITED, Rules, rules
from fakes.controllers.karpenter.schedule import ScheduleUnreadable, is_active
from harness.kube.port import Json


def of(*budgets: Json) -> Rules:
    return rules({"metadata": {"name": "p"}, "spec": {"disruption": {"budgets": list(budgets)}}})


def at(hour: int, minute: int = 0, second: int = 0) -> datetime:
    """On Thursday, 1 January 2026."""
    return datetime(2026, 1, 1, hour, minute, second, tzinfo=UTC)


WORK_HOURS: Json = {"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}


@pytest.mark.parametrize(
    ("now", "most"),
    [
        (at(8, 59, 59), 2),
        (at(9), 0),
        (at(16, 59, 59), 0),
        (at(17), 2),
        (datetime(2026, 1, 3, 12, tzinfo=UTC), 2),
    ],
)
def test_a_budget_with_a_schedule_counts_from_its_moments_on(now: datetime, most: int) -> None:
    assert of({"nodes": "20%"}, WORK_HOURS).allowed(10, EMPTY, now) == most
    assert of(WORK_HOURS).allowed(10, EMPTY, now) == (0 if most == 0 else UNLIMITED)


def test_a_budget_counts_for_its_reasons_only() -> None:
    pool = of({"nodes": "3"}, {"nodes": "1", "reasons": [DRIFTED]})
    assert pool.allowed(10, EMPTY, at(0)) == 3
    assert pool.allowed(10, DRIFTED, at(0)) == 1


@pytest.mark.parametrize(
    ("schedule", "duration_s", "now", "active"),
    [
        ("@daily", 600.0, at(0, 9), True),
        ("@daily", 600.0, at(0, 11), False),
        ("@hourly", 60.0, at(5, 0, 30), True),
        ("*/15 * * * *", 300.0, at(5, 19), True),
        ("*/15 * * * *", 300.0, at(5, 21), False),
    ],
)
def test_moments(schedule: str, duration_s: float, now: datetime, active: bool) -> None:
    assert is_active(schedule, duration_s, now) is active


def test_a_schedule_that_cannot_be_read_lets_nothing_go_for_any_reason() -> None:
    with pytest.raises(ScheduleUnreadable, match="Bad minute"):
        is_active("61 * * * *", 60.0, at(0))
    pool = of({"nodes": "5"}, {"nodes": "1", "schedule": "61 * * * *", "duration": "1h", "reasons": [DRIFTED]})
    assert pool.allowed(10, EMPTY, at(0)) == 0
