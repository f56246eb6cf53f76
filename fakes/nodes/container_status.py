"""One container as its pod's status shows it. Pure: from what is known of it to the API's JSON."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from fakes.nodes.labels import GPU_RESOURCE
from harness.kube.port import Json


class Role(enum.Enum):
    """What a container is for its pod."""

    MAIN = "main"
    INIT = "init"
    """Runs to its end before the next one starts."""
    SIDECAR = "sidecar"
    """An init container with restartPolicy Always: started before the next one, stopped after all main ones."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process of a container ended. Times as the API writes them; empty where there never was a process."""

    code: int
    reason: str
    message: str = ""
    started_at: str = ""
    finished_at: str = ""
    container_id: str = ""

    def as_json(self) -> Json:
        fields: Json = {"exitCode": self.code, "reason": self.reason, "message": self.message}
        fields |= {"startedAt": self.started_at, "finishedAt": self.finished_at, "containerID": self.container_id}
        return {k: v for k, v in fields.items() if v != ""}


NEVER_LOCATED = Ended(
    137, "ContainerStatusUnknown", "The container could not be located when the pod was terminated"
)  # what a kubelet writes for a container that had no process when its pod was terminated


@dataclass(slots=True)
class ContainerView:
    """One container as its status shows it. Exactly one of ``waiting``, ``running_since`` and ``ended`` counts: ended
    over running over waiting."""

    spec: Json
    role: Role = Role.MAIN
    devices: tuple[str, ...] = ()
    waiting: tuple[str, str] = ("ContainerCreating", "")
    running_since: str = ""
    ended: Ended | None = None
    last: Ended | None = None
    restarts: int = 0
    ready: bool = False
    started: bool = False
    image_there: bool = False
    container_id: str = ""

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def is_running(self) -> bool:
        return bool(self.running_since) and self.ended is None

    @property
    def is_waiting(self) -> bool:
        return self.ended is None and not self.running_since


def container_status(view: ContainerView, health: Callable[[str], str]) -> Json:
    """``health``: of a device that the container holds, as the kubelet last heard."""
    image = str(view.spec.get("image", ""))
    resources: Json = view.spec.get("resources") or {}
    status: Json = {
        "name": view.name,
        "state": _state(view),
        "lastState": {"terminated": view.last.as_json()} if view.last else {},
        "ready": view.ended is not None and view.ended.code == 0 if view.role is Role.INIT else view.ready,
        "restartCount": view.restarts,
        "image": image,
        "imageID": image_id(image) if view.image_there else "",
        "started": view.started,
    }
    if view.container_id:
        status |= {"containerID": view.container_id, "resources": resources}
        if requests := resources.get("requests"):
            status["allocatedResources"] = requests
    if view.devices:
        listed = [{"resourceID": id, "health": health(id)} for id in view.devices]
        status["allocatedResourcesStatus"] = [{"name": GPU_RESOURCE, "resources": listed}]
    return status


@lru_cache(maxsize=256)
def image_id(image: str) -> str:
    return f"sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _state(view: ContainerView) -> Json:
    if view.ended is not None:
        return {"terminated": view.ended.as_json()}
    if view.running_since:
        return {"running": {"startedAt": view.running_since}}
    reason, message = view.waiting
    return {"waiting": {"reason": reason, "message": message} if message else {"reason": reason}}
