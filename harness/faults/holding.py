"""Faults that last ``hold_s`` and undo themselves when it is over; and the turning of knobs, which most of them do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import ClassVar

from harness.errors import BadInput
from harness.faults.fault import Fault, NodeFault, Strike, Target
from harness.faults.scene import Scene
from harness.faults.undo import ResetKnob
from harness.faults.undoing import undo_change, world_of
from harness.faults.world_control import Value
from harness.selectors import parse_selector
from harness.spec.model import Count, LabelSelector, Seconds, SpecModel, Text


class HoldFault(Fault):
    """Its own course is over when it has been undone."""

    hold_s: Seconds

    @property
    def ends_s(self) -> float:
        return self.after_s + self.hold_s

    def longest_s(self) -> float:
        return self.hold_s + self.seen_s() + (self.healed_s() or 0.0)

    async def outlast(self, strike: Strike, since_s: float) -> str | None:
        """Undoes it also when the hold is interrupted: a stopped part could not hear that the run is over."""
        loop = asyncio.get_running_loop()
        try:
            await self.while_held(strike, since_s + strike.ground.clock.clock_s(self.hold_s))
        finally:
            said = [await undo_now(strike, entry_seq) for entry_seq in reversed(pending_of(strike))]
        held_s = strike.ground.clock.scenario_s(round((loop.time() - since_s) * 1e9))
        return f"held for {held_s:.0f} s; " + ("; ".join(said) or "nothing was left to undo")

    async def while_held(self, strike: Strike, until_s: float) -> None:
        """Returns at ``until_s`` of the loop's clock; a fault that flaps or goes on to the next target does so here."""
        await asyncio.sleep(max(0.0, until_s - asyncio.get_running_loop().time()))


def pending_of(strike: Strike) -> list[int]:
    return [e.seq for e in strike.ground.undo.replay().pending if e.fault_id == strike.fault_id and e.undo is not None]


async def undo_now(strike: Strike, seq: int) -> str:
    journal = strike.ground.undo
    entry = next(e for e in journal.replay().entries if e.seq == seq)
    assert entry.undo is not None
    detail = await undo_change(strike.ground, entry.undo)
    journal.undone(seq, detail)
    return detail


async def turn(strike: Strike, knob: str, target: str, value: Value) -> None:
    """Turns a knob of the emulated world; where it stood is on disk before."""
    world = world_of(strike.ground)
    earlier = await world.knob(knob, target)
    strike.will_undo(ResetKnob(knob, target, earlier))
    await world.turn(knob, target, value)


async def flap(strike: Strike, knob: str, value: Value, flaps: int, hold_s: float, until_s: float) -> None:
    """Turns the knob off and on again until ``until_s`` of the loop's clock, so that it is on ``flaps`` times. It is on
    already, and its undo is on disk."""
    loop, world = asyncio.get_running_loop(), world_of(strike.ground)
    parts = 2 * flaps - 1
    part_s = strike.ground.clock.clock_s(hold_s) / parts
    begins_s = until_s - part_s * parts
    for part in range(1, parts + 1):
        await asyncio.sleep(max(0.0, begins_s + part_s * part - loop.time()))
        if part < parts:
            for target in strike.targets:
                await world.turn(knob, target, None if part % 2 else value)


class NodeHoldFault(HoldFault, NodeFault):
    """Nodes are in trouble for ``hold_s``."""

    undone_by: ClassVar[tuple[str, ...]] = (ResetKnob.kind,)


class PoolHoldFault(HoldFault):
    """Something is wrong with a pool of instances for ``hold_s``."""

    kind: ClassVar[Target] = Target.POOLS
    undone_by: ClassVar[tuple[str, ...]] = (ResetKnob.kind,)

    pool: Text

    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        if self.pool not in scene.pools:
            raise BadInput(
                f"there is no pool {self.pool!r}", hint=f"there is: {', '.join(sorted(scene.pools)) or 'none'}"
            )
        return (self.pool,)

    def seen_s(self) -> float:
        return self.hold_s  # it shows when somebody asks the pool for an instance


class PartFault(Fault):
    """A fault of one part of the system, known by its name."""

    kind: ClassVar[Target] = Target.PARTS
    part: ClassVar[str] = ""

    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        return (self.part,)


class PartHoldFault(HoldFault, PartFault):
    undone_by: ClassVar[tuple[str, ...]] = (ResetKnob.kind,)


class PodPick(SpecModel):
    """Which pods of the workload a fault may hit, and how many of them."""

    selector: LabelSelector
    count: Count = 1


class PodFault(Fault):
    """A fault whose targets are pods. They are picked when it begins: nobody knows their names before."""

    kind: ClassVar[Target] = Target.PODS

    pods: PodPick

    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        if scene.pods is None:
            return ()
        wanted = parse_selector(self.pods.selector)
        able = sorted(pod.name for pod in scene.pods if wanted.matches(pod.labels))
        if len(able) < self.pods.count:
            raise BadInput(
                f"pods: {self.pods.count} wanted, but {len(able)} running pods match {self.pods.selector!r}",
                hint="lower count, or widen the selector",
            )
        return tuple(rng.sample(able, self.pods.count))

    def fits(self, scene: Scene, planned: Sequence[str]) -> bool:
        return False

    def radius(self, scene: Scene, targets: Sequence[str]) -> dict[str, int]:
        return {"pods": self.pods.count}

    def most_targets(self) -> int:
        return self.pods.count


class PodHoldFault(HoldFault, PodFault):
    undone_by: ClassVar[tuple[str, ...]] = (ResetKnob.kind,)
