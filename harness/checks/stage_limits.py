"""Limits on the stages of one added replica, each from the mark before it that the replica needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.units import both, span_ns
from harness.history.scaleup import STAGES, Replica
from harness.verdict import Status

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import ScaleUpSpec

LIMITED = {
    "T0'": ("readable_s_max", "the metric to be readable"),
    "T1": ("decided_s_max", "its decision"),
    "T3": ("claimed_s_max", "a node to be decided"),
    "T4": ("registered_s_max", "its node to register"),
    "T5": ("usable_s_max", "its node to be usable"),
    "T6": ("started_s_max", "its container to run"),
    "T7": ("loaded_s_max", "its model to be loaded"),
    "T8": ("served_s_max", "its first token"),
}
"""The mark that ends a stage, the key of its limit, and what the replica waits for until then."""


def limited(spec: ScaleUpSpec) -> bool:
    return any(getattr(spec, key) is not None for key, _ in LIMITED.values())


@dataclass(frozen=True, slots=True)
class Stages:
    """``due_ns`` is when the first stage that was late ran out of time."""

    status: Status
    why: tuple[str, ...] = ()
    due_ns: int | None = None


def stages_of(history: History, replica: Replica, spec: ScaleUpSpec) -> Stages:
    """FAIL with a few words for each stage that took longer than it may; UNKNOWN where a needed mark was not seen
    though the replica served; else PASS. A stage that a replica did not need (there was room at once) has no limit.
    """
    scale = history.run.time_scale
    late: list[str] = []
    due_ns: int | None = None
    unseen: list[str] = []
    before_ns = replica.start_ns
    for name in STAGES[1:]:
        mark = replica.marks[name]
        if before_ns is None or not mark.needed:
            continue
        key, what = LIMITED.get(name, ("", ""))
        limit_s: float | None = getattr(spec, key) if key else None
        limit_ns = None if limit_s is None else span_ns(limit_s, scale)
        if mark.t_ns is not None:
            took_ns = max(0, mark.t_ns - before_ns)
            if limit_ns is not None and took_ns > limit_ns:
                late.append(f"it waited {both(took_ns, scale)} for {what} ({name}, limit {limit_s:.0f} s)")
                due_ns = due_ns or before_ns + limit_ns
            before_ns = max(before_ns, mark.t_ns)
            continue
        if replica.served_ns is not None:
            unseen += [f"{name} was not seen, so {key} could not be judged"] if limit_ns is not None else []
            continue
        until_ns = min(history.recorded_until_ns, replica.withdrawn_ns or history.recorded_until_ns)
        if limit_ns is not None and until_ns - before_ns > limit_ns:
            late.append(f"it waited for {what} longer than {limit_s:.0f} s ({name})")
            due_ns = due_ns or before_ns + limit_ns
        break
    if late:
        return Stages(Status.FAIL, tuple(late), due_ns)
    return Stages(Status.UNKNOWN if unseen else Status.PASS, tuple(unseen))
