"""How the supervisor starts Chaos Toolkit, and what it reads of its journal. Its own verdict is not ours."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def chaos_command(experiment: Path, journal: Path, python: Path | None = None) -> list[str]:
    """Nothing newer than chaostoolkit 1.19 has, and none of the settings of the machine's user (controls,
    notifications). Absolute paths, for the working directory may be another one."""
    return [
        str(python or sys.executable), "-m", "chaostoolkit",
        "--no-version-check", "--no-log-file", "--settings", os.devnull,
        "run", "--rollback-strategy", "always", "--journal-path", str(journal.resolve()),
        str(experiment.resolve()),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ActivityOutcome:
    """``part`` is before, method, after or rollback. ``status`` succeeded means only that the call returned."""

    part: str
    name: str
    status: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class ChaosOutcome:
    """``status`` is Chaos Toolkit's word: completed, failed, aborted or interrupted."""

    status: str
    deviated: bool = False
    steady_before: bool | None = None
    steady_after: bool | None = None
    activities: tuple[ActivityOutcome, ...] = ()

    @property
    def failed(self) -> tuple[ActivityOutcome, ...]:
        return tuple(activity for activity in self.activities if activity.status != "succeeded")

    @property
    def why(self) -> str:
        """What kept it from going through, in words for people."""
        if self.failed:
            first = self.failed[0]
            return f"{first.name} ({first.part}) {first.status}: {first.error or 'no reason given'}"
        if self.steady_before is False:
            return "the steady state was not met before the method, so nothing was injected"
        return f"its status is {self.status}"


def read_journal(path: Path) -> ChaosOutcome | None:
    """None where there is no journal, or half of one: it is written only at the very end, so its writer was killed."""
    try:
        return _outcome(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _outcome(raw: Mapping[str, Any]) -> ChaosOutcome:
    states = raw.get("steady_states") or {}
    before, after = states.get("before") or {}, states.get("after") or {}
    runs = (
        *(("before", run) for run in before.get("probes") or ()),
        *(("method", run) for run in raw.get("run") or ()),
        *(("after", run) for run in after.get("probes") or ()),
        *(("rollback", run) for run in raw.get("rollbacks") or ()),
    )
    return ChaosOutcome(
        status=str(raw["status"]),
        deviated=bool(raw.get("deviated")),
        steady_before=before.get("steady_state_met"),
        steady_after=after.get("steady_state_met"),
        activities=tuple(_activity(part, run) for part, run in runs),
    )


def _activity(part: str, run: Mapping[str, Any]) -> ActivityOutcome:
    # An activity that was interrupted has no status at all.
    said = run.get("exception") or ()
    return ActivityOutcome(
        part=part,
        name=str((run.get("activity") or {}).get("name", "")),
        status=str(run.get("status") or "interrupted"),
        error=str(said[-1]).strip() if said else "",
    )
