"""When a budget of a NodePool is active that has a schedule and a duration.

As Karpenter v1.15 pkg/apis/v1/nodepool.go (Budget.IsActive), whose cron expressions are the standard five fields or a
name such as ``@daily``, in UTC. Both are read on the world's wall clock, which ``time_scale`` does not stretch.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

NAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class ScheduleUnreadable(ValueError):
    """Its budget lets nothing go."""


def is_active(schedule: str, duration_s: float, now: datetime) -> bool:
    """Whether the schedule has been hit within the last ``duration_s``. Raises ``ScheduleUnreadable``, also for a day
    that never comes (the 30th of February), which the library of the real one takes for always."""
    begin = now.astimezone(UTC) - timedelta(seconds=duration_s)
    try:
        return next(CronSim(NAMES.get(schedule, schedule), begin)) <= now
    except CronSimError as error:
        raise ScheduleUnreadable(f"schedule {schedule!r}: {error}") from error
