"""The emulated cloud's control plane, called within the process."""

from __future__ import annotations

from fakes.cloud.cloud import Cloud, CloudError, UnknownInstance, WrongState
from harness.errors import TargetError
from harness.faults.cloud_control import CloudInstance


class LocalCloudControl:
    """A ``CloudControl``: the same answers as over HTTP."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    async def instances(self) -> tuple[CloudInstance, ...]:
        found = self._cloud.instances.values()
        return tuple(CloudInstance(i.id, i.node, i.pool.name, i.state.value) for i in found)

    async def interrupt(self, instance_id: str, notice_s: float) -> None:
        try:
            self._cloud.interrupt(instance_id, notice_s)
        except CloudError as error:
            raise TargetError(f"the cloud refused to interrupt {instance_id}: {error}") from error

    async def cancel_interruption(self, instance_id: str) -> str:
        try:
            self._cloud.cancel_interruption(instance_id)
        except UnknownInstance:
            return f"{instance_id} is not there any more"
        except WrongState:
            return f"{instance_id} is terminated already; heal brings no capacity back"
        return f"no interruption is planned for {instance_id} any more"
