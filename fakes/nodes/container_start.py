"""Getting a container to the point where it can be created: its image, its configuration, and what is said meanwhile.

A kubelet tries again each 10 to 15 s, and what a pod's status shows is what the try before the last one met: so
ErrImagePull and ImagePullBackOff take turns (as a real kubelet's timeline shows, and kubernetes v1.37
pkg/kubelet/images/image_manager.go).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from fakes.config import PlantedBug
from fakes.nodes.config_refs import missing_config
from fakes.nodes.container_status import ContainerView
from fakes.nodes.images import PullFailed, pulled_message
from fakes.nodes.services import NodeServices
from harness.kube.port import Json

RESYNC_S = 10
"""A kubelet looks at a pod that met an error again after this long, and up to half as long again."""
FIRST_BACK_OFF_S = 10
LONGEST_BACK_OFF_S = 300

SayEvent = Callable[[str, str, str, str], None]
"""Type, reason, message, and the name of the container it is about."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The reason and message of a container that waits."""

    reason: str
    message: str


class Preparation:
    """``ready`` comes back once the container can be created. Cancel it when the pod is stopped meanwhile."""

    def __init__(
        self,
        node: NodeServices,
        view: ContainerView,
        pod: Callable[[], Json],
        changed: Callable[[], None],
        event: SayEvent,
    ) -> None:
        self._node = node
        self._view = view
        self._pod = pod
        self._changed = changed
        self._event = event
        self._back_off_s = float(FIRST_BACK_OFF_S)
        self._not_before_s = 0.0
        self._pull_problem = ""

    async def ready(self) -> None:
        problem = await self._attempt()
        if problem is None:
            return
        self._show(problem)
        problem = await self._attempt()
        while problem is not None:
            await asyncio.sleep(resync_s(self._node))
            self._show(problem)
            problem = await self._attempt()

    def _show(self, problem: Problem) -> None:
        self._view.waiting = (problem.reason, problem.message)
        self._changed()

    def _say(self, type: str, reason: str, message: str) -> None:
        self._event(type, reason, message, self._view.name)

    async def _attempt(self) -> Problem | None:
        problem = await self._image()
        if problem is None:
            missing = await missing_config(self._node.client, self._pod()["metadata"]["namespace"], self._view.spec)
            problem = Problem("CreateContainerConfigError", missing) if missing else None
            if problem is not None:
                self._say("Warning", "Failed", f"Error: {problem.message}")
        return problem

    async def _image(self) -> Problem | None:
        image, policy = str(self._view.spec.get("image", "")), self._view.spec.get("imagePullPolicy", "IfNotPresent")
        if policy != "Always" and image in self._node.images.names:
            there = f'Container image "{image}" already present on machine and can be accessed by the pod'
            self._say("Normal", "Pulled", there)
        elif policy == "Never":
            why = f'Container image "{image}" is not present with pull policy of Never'
            self._say("Warning", "ErrImageNeverPull", why)
            self._say("Warning", "Failed", "Error: ErrImageNeverPull")
            return Problem("ErrImageNeverPull", why)
        elif asyncio.get_running_loop().time() < self._not_before_s:
            self._say("Normal", "BackOff", f'Back-off pulling image "{image}"')
            self._say("Warning", "Failed", "Error: ImagePullBackOff")
            return Problem("ImagePullBackOff", f'Back-off pulling image "{image}": ErrImagePull: {self._pull_problem}')
        else:
            self._say("Normal", "Pulling", f'Pulling image "{image}"')
            if PlantedBug.IMAGE_PULL_HANGS in self._node.bugs and self._node.machine.provisioned:
                await asyncio.Event().wait()
            try:
                pulled = await self._node.images.pull(image)
            except PullFailed as error:
                return self._failed(image, str(error))
            self._say("Normal", "Pulled", pulled_message(image, pulled))
        self._view.image_there = True
        return None

    def _failed(self, image: str, why: str) -> Problem:
        now_s = asyncio.get_running_loop().time()
        self._not_before_s = now_s + self._node.timing.clock_s(self._back_off_s)
        self._back_off_s = min(LONGEST_BACK_OFF_S, self._back_off_s * 2)
        self._pull_problem = why
        self._say("Warning", "Failed", f'Failed to pull image "{image}": {why}')
        self._say("Warning", "Failed", "Error: ErrImagePull")
        return Problem("ErrImagePull", why)


def resync_s(node: NodeServices) -> float:
    """Clock seconds until a kubelet looks again at a pod that met an error."""
    return node.timing.clock_s(RESYNC_S * node.rng.uniform(1.0, 1.5))
