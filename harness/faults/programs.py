"""The real programs of a target (kube-scheduler, Karpenter, Kueue…) as one more knob beside those of what is emulated.

So stopping one is journaled, healed and swept as any other switch is. The target starts, stops and watches them; see
``harness/stack/control.py`` for what it serves.
"""

from __future__ import annotations

import httpx

from harness.errors import TargetError
from harness.faults.world_control import ForwardingWorld, TargetGone, Value, WorldControl

HALTED = "program.halted"
"""Of a program by its name: "stop" (SIGTERM), "kill" (SIGKILL), "freeze" (SIGSTOP), or None: it runs."""
START_WITHIN_S = 70.0
"""A start is answered once the program says that it serves."""


class ProgramsWorld(ForwardingWorld):
    """A ``WorldControl`` that knows the target's programs, too."""

    def __init__(self, world: WorldControl, stack_url: str) -> None:
        super().__init__(world)
        self._url = stack_url

    async def knob(self, knob: str, target: str) -> Value:
        """By the target's own look at the process."""
        if knob != HALTED:
            return await super().knob(knob, target)
        programs = {p["name"]: p for p in (await self._ask("GET", "/programs", target))["programs"]}
        if target not in programs:
            raise TargetGone(f"there is no program {target!r}; there is: {', '.join(sorted(programs))}")
        if programs[target]["frozen"]:
            return "freeze"
        return None if programs[target]["running"] else "stop"

    async def turn(self, knob: str, target: str, value: Value) -> None:
        if knob != HALTED:
            await super().turn(knob, target, value)
        elif value is not None or await self.knob(knob, target) is not None:
            await self._ask("POST", f"/programs/{target}/{value or 'start'}", target)

    async def _ask(self, method: str, path: str, target: str) -> dict[str, list[dict[str, Value]]]:
        # Ours and local: a proxy from the environment has no business in between.
        async with httpx.AsyncClient(base_url=self._url, timeout=START_WITHIN_S, trust_env=False) as client:
            try:
                answer = await client.request(method, path)
            except httpx.HTTPError as error:
                raise ConnectionError(f"the target's programs cannot be reached: {error}") from error
        found: dict[str, list[dict[str, Value]]] = answer.json()
        if answer.status_code == 404:
            raise TargetGone(f"{target}: {answer.json().get('error')}")
        if not answer.is_success:
            raise TargetError(f"{target}: {answer.json().get('error')}", hint="see its log in the run's folder")
        return found
