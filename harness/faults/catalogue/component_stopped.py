"""A real controller is gone for a while, and comes back with nothing but what the API server knows."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import ClassVar, Literal

from harness.faults.fault import Strike, Target
from harness.faults.fidelity import CONTROL_PLANE, Fidelity, FidelityMap
from harness.faults.holding import HoldFault, turn
from harness.faults.programs import HALTED
from harness.faults.scene import Scene
from harness.faults.undo import ResetKnob
from harness.faults.undoing import world_of
from harness.spec.model import Text


class ComponentStopped(HoldFault):
    """Blast radius: one program of the target, ended by SIGTERM (``stop``) or SIGKILL (``kill``), started again after
    ``hold_s``. What it would have done is not done meanwhile; its webhooks refuse what they guard. With ``freeze``
    (SIGSTOP) its process is there and answers nobody: who asks it waits for as long as it has patience."""

    name: ClassVar[str] = "component_stopped"
    colour: ClassVar[str] = "#3b3f99"
    kind: ClassVar[Target] = Target.PARTS
    fidelity: ClassVar[FidelityMap] = {CONTROL_PLANE: Fidelity.NATIVE}
    why_not: ClassVar[Mapping[str, str]] = {
        "embedded": "its controllers are parts of one process: part_stopped halts one of them"
    }
    undone_by: ClassVar[tuple[str, ...]] = (ResetKnob.kind,)

    component: Text
    how: Literal["stop", "kill", "freeze"] = "kill"

    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        return (self.component,)

    async def inject(self, strike: Strike) -> None:
        await turn(strike, HALTED, self.component, self.how)

    async def signs(self, strike: Strike) -> dict[str, str]:
        found = await world_of(strike.ground).knob(HALTED, self.component)
        if found is None or (found == "freeze") is not (self.how == "freeze"):
            return {}
        return {self.component: f"{self.component}: {self._sign()}"}

    def _sign(self) -> str:
        return "its process stands still" if self.how == "freeze" else "its process has ended"

    def expected(self) -> tuple[str, str]:
        return self._sign(), "`gpu-harness stack status` lists the programs by name"
