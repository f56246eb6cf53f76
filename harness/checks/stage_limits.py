"""Limits on the stages of one added replica, each from the mark before it that the replica needed."""

from __future__ import annotations

from collections.abc import Iterable
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
    """``due_ns`` is when the first stage that was late ran out of time, ``judged`` the keys that were put to the
    test."""

    status: Status
    why: tuple[str, ...] = ()
    due_ns: int | None = None
    judged: frozenset[str] = frozenset()


def stages_of(history: History, replica: Replica, spec: ScaleUpSpec) -> Stages:
    """FAIL with a few words for each stage that took longer than it may; else UNKNOWN where its end was not seen though
    the replica served, or its beginning was not and it seems too long; else PASS. A stage that a replica did not need
    (there was room at once) has no limit.
    """
    scale = history.run.time_scale
    late: list[str] = []
    unsure: list[str] = []
    judged: set[str] = set()
    due_ns: int | None = None
    before_ns, missing = replica.start_ns, ""
    for name in STAGES[1:] if before_ns is not None else ():
        mark = replica.marks[name]
        key, what = LIMITED.get(name, ("", ""))
        limit_s: float | None = getattr(spec, key) if key else None
        limit_ns = None if limit_s is None else span_ns(limit_s, scale)
        assert before_ns is not None
        if mark.t_ns is not None:
            took_ns = max(0, mark.t_ns - before_ns)
            judged |= {key} if limit_ns is not None else set()
            if limit_ns is not None and took_ns > limit_ns and missing:
                unsure.append(f"{missing} was not seen, so {key} could not be judged")
            elif limit_ns is not None and took_ns > limit_ns:
                late.append(f"it waited {both(took_ns, scale)} for {what} ({name}, limit {limit_s:.0f} s)")
                due_ns = due_ns or before_ns + limit_ns
            before_ns, missing = max(before_ns, mark.t_ns), ""
        elif mark.unseen or (mark.needed and replica.served_ns is not None):
            unsure += [f"{name} was not seen, so {key} could not be judged"] if limit_ns is not None else []
            judged |= {key} if limit_ns is not None else set()
            missing = name
        elif mark.needed:
            until_ns = min(history.recorded_until_ns, replica.withdrawn_ns or history.recorded_until_ns)
            if limit_ns is not None and until_ns - before_ns > limit_ns and not missing:
                late.append(f"it waited for {what} longer than {limit_s:.0f} s ({name})")
                due_ns = due_ns or before_ns + limit_ns
                judged.add(key)
            break
    status = Status.FAIL if late else Status.UNKNOWN if unsure else Status.PASS
    return Stages(status, tuple(late or unsure), due_ns, frozenset(judged))


def untested(judged: Iterable[Stages], spec: ScaleUpSpec) -> list[str]:
    """Limits that are asked for, and that no replica put to the test."""
    tested = frozenset[str]().union(*(stages.judged for stages in judged))
    asked = [key for key, _ in LIMITED.values() if getattr(spec, key) is not None]
    return [key for key in asked if key not in tested]
