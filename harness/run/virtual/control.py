"""The control API of the emulated world, called within the process."""

from __future__ import annotations

from fakes.cloud.cloud import CloudError, UnknownInstance, WrongState
from fakes.control.control import Control
from fakes.control.knobs import ControlError, UnknownTarget
from harness.errors import TargetError
from harness.faults.world_control import CloudInstance, TargetGone, Value
from harness.kube.port import Json


class LocalWorldControl:
    """A ``WorldControl``: the same answers as over HTTP."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._cloud = control.cloud

    async def instances(self) -> tuple[CloudInstance, ...]:
        found = self._cloud.instances.values()
        return tuple(CloudInstance(i.id, i.node, i.pool.name, i.state.value) for i in found)

    async def interrupt(self, instance_id: str, notice_s: float) -> None:
        try:
            self._cloud.interrupt(instance_id, notice_s)
        except CloudError as error:
            raise TargetError(f"the world refused to interrupt {instance_id}: {error}") from error

    async def cancel_interruption(self, instance_id: str) -> str:
        try:
            self._cloud.cancel_interruption(instance_id)
        except UnknownInstance:
            return f"{instance_id} is not there any more"
        except WrongState:
            return f"{instance_id} is terminated already; heal brings no capacity back"
        return f"no interruption is planned for {instance_id} any more"

    async def pools(self, capacity_type: str = "") -> tuple[str, ...]:
        return tuple(p["name"] for p in self._control.pools() if capacity_type in ("", p["capacity_type"]))

    async def knob(self, knob: str, target: str) -> Value:
        try:
            return self._control.knobs.value(knob, target)
        except ControlError as error:
            raise TargetError(f"the world refused to show {knob} of {target}: {error}") from error

    async def turn(self, knob: str, target: str, value: Value) -> None:
        try:
            await self._control.knobs.turn(knob, target, value)
        except UnknownTarget as error:
            raise TargetGone(f"the world refused to turn {knob} of {target}: {error}") from error
        except ControlError as error:
            raise TargetError(f"the world refused to turn {knob} of {target}: {error}") from error

    async def do(self, verb: str, target: str, arguments: Json) -> None:
        try:
            await self._control.do(verb, target, arguments)
        except ControlError as error:
            raise TargetError(f"the world refused to {verb} {target}: {error}") from error

    async def watches_begun(self) -> dict[str, int]:
        return self._control.watches_begun()
