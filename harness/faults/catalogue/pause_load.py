"""The load generator stands still: a negative control, for it is the harness that fails here, not the cluster."""

from __future__ import annotations

from random import Random
from typing import ClassVar

from harness.errors import HarnessError
from harness.faults.fault import Strike, Target
from harness.faults.fidelity import EVERYWHERE, VIRTUAL, Fidelity, FidelityMap
from harness.faults.holding import HoldFault
from harness.faults.load_process import LOAD, load_of
from harness.faults.scene import Scene
from harness.faults.undo import ResumeLoad, ResumeProcess


class PauseLoad(HoldFault):
    """Blast radius: this run's own load process, stopped for ``hold_s`` scenario seconds."""

    name: ClassVar[str] = "pause_load"
    colour: ClassVar[str] = "#9467bd"
    kind: ClassVar[Target] = Target.PARTS
    disruptive: ClassVar[bool] = False
    fidelity: ClassVar[FidelityMap] = {**EVERYWHERE, VIRTUAL: Fidelity.EMULATED}
    undone_by: ClassVar[tuple[str, ...]] = (ResumeProcess.kind, ResumeLoad.kind)

    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        return (LOAD,)

    def seen_s(self) -> float:
        return 0.0

    async def inject(self, strike: Strike) -> None:
        load = load_of(strike.ground)
        strike.will_undo(load.resume_undo())
        load.pause()

    async def signs(self, strike: Strike) -> dict[str, str]:
        try:
            paused = load_of(strike.ground).paused()
        except HarnessError:
            return {}  # it has ended, which is no pause
        return {LOAD: paused} if paused else {}

    def expected(self) -> tuple[str, str]:
        return "the load stands still", "is it the load of this run?"
