"""The status a kubelet reports for a pod. Pure: from what is known of its containers to the API's JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fakes.nodes.labels import GPU_RESOURCE
from harness.kube.port import Json

OWN_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
"""PodScheduled and DisruptionTarget belong to others; a strategic patch leaves them alone."""


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
    def ever_ran(self) -> bool:
        return bool(self.running_since) or self.ended is not None or self.last is not None


@dataclass(frozen=True, slots=True)
class PodFacts:
    """``terminal`` once no container will run again."""

    start_time: str
    host_ip: str
    pod_ip: str = ""
    terminal: bool = False


def phase(views: Sequence[ContainerView], terminal: bool) -> str:
    if terminal:
        return "Succeeded" if all(v.ended is not None and v.ended.code == 0 for v in views) else "Failed"
    return "Running" if all(v.ever_ran for v in views) else "Pending"


def pod_status(
    pod: Json, views: Sequence[ContainerView], facts: PodFacts, before: Mapping[str, Json], stamp: str
) -> Json:
    """``before``: the conditions written last, by type, whose ``lastTransitionTime`` lives on where nothing changed."""
    status: Json = {
        "phase": phase(views, facts.terminal),
        "conditions": [_since(c, before.get(c["type"]), stamp) for c in _conditions(views, facts)],
        "hostIP": facts.host_ip,
        "hostIPs": [{"ip": facts.host_ip}],
        "startTime": facts.start_time,
        "containerStatuses": [container_status(v) for v in views],
    }
    if facts.pod_ip:
        status |= {"podIP": facts.pod_ip, "podIPs": [{"ip": facts.pod_ip}]}
    if generation := pod["metadata"].get("generation"):
        status["observedGeneration"] = generation
        for condition in status["conditions"]:
            condition["observedGeneration"] = generation
    return status


def rejected_status(pod: Json, reason: str, message: str, start_time: str) -> Json:
    """A pod that was refused at admission has neither conditions nor container statuses from the kubelet."""
    status: Json = {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}"}
    status["startTime"] = start_time
    if generation := pod["metadata"].get("generation"):
        status["observedGeneration"] = generation
    return status


def container_status(view: ContainerView) -> Json:
    image = str(view.spec.get("image", ""))
    resources: Json = view.spec.get("resources") or {}
    status: Json = {
        "name": view.name,
        "state": _state(view),
        "lastState": {"terminated": view.last.as_json()} if view.last else {},
        "ready": view.ready,
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
        healthy = [{"resourceID": id, "health": "Healthy"} for id in view.devices]
        status["allocatedResourcesStatus"] = [{"name": GPU_RESOURCE, "resources": healthy}]
    return status


def image_id(image: str) -> str:
    return f"sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _state(view: ContainerView) -> Json:
    if view.ended is not None:
        return {"terminated": view.ended.as_json()}
    if view.running_since:
        return {"running": {"startedAt": view.running_since}}
    reason, message = view.waiting
    return {"waiting": {"reason": reason, "message": message} if message else {"reason": reason}}


def _conditions(views: Sequence[ContainerView], facts: PodFacts) -> list[Json]:
    ended_phase = phase(views, True) if facts.terminal else ""
    if facts.terminal:
        sandbox = _condition("PodReadyToStartContainers", False, "PodSandboxNotReady", "pod sandbox is not ready")
    else:
        sandbox = _condition("PodReadyToStartContainers", bool(facts.pod_ip))
    completed = "PodCompleted" if ended_phase == "Succeeded" else ""
    unready = [v.name for v in views if not v.ready]
    if not unready and not facts.terminal:
        readiness: tuple[bool, str, str] = (True, "", "")
    elif facts.terminal:
        readiness = (False, completed or "PodFailed", "")
    else:
        readiness = (False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
    return [
        sandbox,
        _condition("Initialized", True, completed),
        _condition("Ready", *readiness),
        _condition("ContainersReady", *readiness),
    ]


def _condition(type: str, status: bool, reason: str = "", message: str = "") -> Json:
    """None takes a key away in a patch: a condition that turns True loses its reason."""
    return {"type": type, "status": str(status), "reason": reason or None, "message": message or None}


def _since(condition: Json, before: Json | None, stamp: str) -> Json:
    same = before is not None and before["status"] == condition["status"]
    return {**condition, "lastTransitionTime": before["lastTransitionTime"] if before and same else stamp}
