"""Directs an experiment's course: hypothesis, method, recovery, hypothesis, rollbacks; as Chaos Toolkit and our control
do it together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from harness.clock import NS_PER_S
from harness.errors import HarnessError, InternalError
from harness.faults.heal import HealReport, heal_pending
from harness.faults.log import FaultLog
from harness.faults.port import Ground
from harness.kube.port import ApiError
from harness.run.playing import Play, play
from harness.run.progress import Stopped
from harness.run.steady import count_pending, read_workload
from harness.run.virtual.loop import VirtualClock
from harness.run.virtual.script import Probe, Script
from harness.spec.experiment import PlannedAction
from harness.spec.probes import PodsPending, ReplicasReady, WorkloadSteady

HEAL_WITHIN_S = 20.0


class Director:
    def __init__(
        self,
        script: Script,
        ground: Ground,
        faults: FaultLog,
        clock: VirtualClock,
        *,
        seed: int,
        planned: Mapping[str, Sequence[str]],
        recovery_s: float,
        say: Callable[[str], None],
        load_finished: Callable[[], bool],
    ) -> None:
        self._script = script
        self._ground = ground
        self._faults = faults
        self._clock = clock
        self._seed = seed
        self._planned = planned
        self._recovery_s = recovery_s
        self._say = say
        self._load_finished = load_finished
        self._load_start_ns = 0

    async def run(self, load_start_ns: int) -> None:
        """Raises ``Stopped`` when the steady state was not met before the method; after it, too, while load goes on."""
        self._load_start_ns = load_start_ns
        if self._script.hypothesis and not await self._steady("steady_state_before"):
            await self.heal()
            raise Stopped("aborted", "the steady state was not met before the method, so nothing was injected")
        await self._method()
        recovered_s = self._clock.scenario_s(self._clock.now_ns() - load_start_ns) + self._recovery_s
        await self._wait_for_scenario_s(recovered_s)
        again = bool(self._script.hypothesis) and self._script.after_method
        met = await self._steady("steady_state_after") if again else True
        if self._script.heals:
            await self.heal()
        if not met and not self._load_finished():
            raise Stopped("aborted", "the steady state was not met after the method, and the load had not ended")

    async def heal(self) -> HealReport:
        async with asyncio.timeout(HEAL_WITHIN_S):
            return await heal_pending(self._ground, self._faults)

    async def _method(self) -> None:
        aside: list[asyncio.Task[None]] = []
        for step in self._script.steps:
            course = self._look(step.what) if isinstance(step.what, Probe) else self._act(step.what)
            if step.background:
                aside.append(asyncio.create_task(course))
            else:
                await course
        if aside:
            await asyncio.gather(*aside)

    async def _act(self, action: PlannedAction) -> None:
        """A fault that fails is in the history, and the method goes on: what it means is for the checks to say."""
        late_s = await self._wait_for_scenario_s(action.fault.starts_s)
        self._say(f"fault {action.fault_id} begins")
        try:
            what = Play(action.fault, action.fault_id, self._seed, self._planned.get(action.fault_id, ()))
            result = await play(what, self._ground, self._faults, late_s)
        except (HarnessError, ApiError, OSError) as error:
            self._say(f"fault {action.fault_id} failed: {error}")
        else:
            self._say(f"fault {action.fault_id}: {result.observed}; {result.ended or 'until it is healed'}")

    async def _look(self, probe: Probe) -> None:
        await self._value(probe)

    async def _steady(self, mark: str) -> bool:
        """Chaos Toolkit looks at the probes in turn and stops at the first that is not met."""
        for probe in self._script.hypothesis:
            try:
                value = await self._value(probe)
            except (HarnessError, ApiError, OSError) as error:
                self._faults.mark(mark, "error", f"{probe.name}: {error}")
                return False
            if not probe.within_tolerance(value):
                self._faults.mark(mark, "not_met", f"{probe.name}: {value!r} is not within its tolerance")
                return False
        self._faults.mark(mark, "met", "")
        return True

    async def _value(self, probe: Probe) -> object:
        kube, namespace = self._ground.kube, self._ground.namespace
        match probe.arguments:
            case WorkloadSteady() as a:
                await self._wait_for_scenario_s(a.after_s)
                problem = (await read_workload(kube, namespace, self._ground.selector)).problem(a.ready_min)
                if problem:
                    self._say(f"not steady: {problem}")
                return problem is None
            case ReplicasReady():
                return (await read_workload(kube, namespace, self._ground.selector)).ready
            case PodsPending():
                return await count_pending(kube, namespace, self._ground.selector)
        raise InternalError(f"nobody told the virtual run how to ask {probe.func}")

    async def _wait_for_scenario_s(self, after_s: float) -> float:
        """Returns at that scenario second, or at once when it has passed; says how late, in scenario seconds."""
        due_ns = self._load_start_ns + round(self._clock.clock_s(after_s) * NS_PER_S)
        await asyncio.sleep(max(0, due_ns - self._clock.now_ns()) / NS_PER_S)
        return self._clock.scenario_s(max(0, self._clock.now_ns() - due_ns))
