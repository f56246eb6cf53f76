"""Faults that last ``hold_s`` and undo themselves when it is over; and the turning of knobs, which most of them do."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from harness.faults.fault import Fault, NodeFault, Strike
from harness.faults.undo import ResetKnob
from harness.faults.undoing import undo_change, world_of
from harness.faults.world_control import Value
from harness.spec.model import Seconds


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


class NodeHoldFault(HoldFault, NodeFault):
    """Nodes are in trouble for ``hold_s``."""

    undone_by: ClassVar[tuple[str, ...]] = (ResetKnob.kind,)
