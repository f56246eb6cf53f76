"""The status a kubelet reports for a pod. Pure: from what is known of its containers to the API's JSON.

The rules of phases and conditions are those of kubernetes v1.37 pkg/kubelet/kubelet_pods.go (getPhase) and
pkg/kubelet/status/generate.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fakes.nodes.container_status import ContainerView, Role, container_status
from harness.kube.port import Json

OWN_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
"""PodScheduled belongs to the scheduler; a strategic patch leaves it alone."""
EVICTED = "Evicted"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why the kubelet itself ended the pod."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodFacts:
    """``over`` once no container will run again, ``terminal`` once the kubelet is done with the pod: only then is the
    phase a final one."""

    start_time: str
    host_ip: str
    pod_ip: str = ""
    over: bool = False
    terminal: bool = False
    initialized: bool = False
    """Whether a main container has ever started: then the init containers no longer count."""
    verdict: Verdict | None = None


def phase(pod: Json, views: Sequence[ContainerView], facts: PodFacts) -> str:
    """What the containers' states come to."""
    never = pod["spec"].get("restartPolicy", "Always") == "Never"
    inits = [v for v in views if v.role is Role.INIT]
    if never and any(_last_code(v) not in (None, 0) and not v.is_running for v in inits):
        return "Failed"
    sidecars = [v for v in views if v.role is Role.SIDECAR]
    mains = [v for v in views if v.role is Role.MAIN]
    if facts.over:
        return "Succeeded" if all(v.ended is not None and v.ended.code == 0 for v in mains) else "Failed"
    if not facts.initialized:
        if any(v.ended is None and (v.is_running or v.last is None) for v in inits):
            return "Pending"
        if any((v.is_running and not v.started) or (v.is_waiting and v.last is None) for v in sidecars):
            return "Pending"
    if any(v.is_waiting and v.last is None for v in (*mains, *sidecars)):
        return "Pending"
    return "Running"


def pod_status(
    pod: Json,
    views: Sequence[ContainerView],
    facts: PodFacts,
    before: Mapping[str, Json],
    stamp: str,
    health: Callable[[str], str],
) -> Json:
    """``before``: the conditions written last, by type, whose ``lastTransitionTime`` lives on where nothing changed."""
    came_to = phase(pod, views, facts)
    verdict = facts.verdict
    if verdict is not None and not (verdict.reason == EVICTED and came_to == "Succeeded"):
        came_to = "Failed"
    else:
        verdict = None
    status: Json = {
        "phase": came_to if facts.terminal or came_to not in ("Succeeded", "Failed") else _still(pod),
        "conditions": [_since(c, before.get(c["type"]), stamp) for c in _conditions(pod, views, facts, came_to)],
        "hostIP": facts.host_ip,
        "hostIPs": [{"ip": facts.host_ip}],
        "startTime": facts.start_time,
        "containerStatuses": [container_status(v, health) for v in views if v.role is Role.MAIN],
    }
    if inits := [container_status(v, health) for v in views if v.role is not Role.MAIN]:
        status["initContainerStatuses"] = inits
    if verdict is not None and facts.terminal:
        status |= {"reason": verdict.reason, "message": verdict.message}
    if facts.pod_ip:
        status |= {"podIP": facts.pod_ip, "podIPs": [{"ip": facts.pod_ip}]}
    if generation := pod["metadata"].get("generation"):
        status["observedGeneration"] = generation
        for condition in status["conditions"]:
            condition["observedGeneration"] = generation
    return status


def rejected_status(pod: Json, reason: str, message: str, start_time: str) -> Json:
    """A pod that was refused at admission has neither conditions nor container statuses, not even those it had before:
    the kubelet writes the whole status anew, and None takes a key away in a patch."""
    kept = ("phase", "reason", "message", "startTime", "observedGeneration", "qosClass")
    status: Json = {key: None for key in pod.get("status") or {} if key not in kept}
    status |= {"phase": "Failed", "reason": reason, "message": f"Pod was rejected: {message}"}
    status["startTime"] = start_time
    if generation := pod["metadata"].get("generation"):
        status["observedGeneration"] = generation
    return status


def _still(pod: Json) -> str:
    """The phase of a pod whose containers have ended, but which the kubelet has not put away yet."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def _last_code(view: ContainerView) -> int | None:
    ended = view.ended or view.last
    return None if ended is None else ended.code


def _conditions(pod: Json, views: Sequence[ContainerView], facts: PodFacts, came_to: str) -> list[Json]:
    has_sandbox = bool(facts.pod_ip) and not facts.terminal
    sandbox = ("", "") if has_sandbox else ("PodSandboxNotReady", "pod sandbox is not ready")
    containers = _containers_ready(views, came_to)
    found = [
        _condition("PodReadyToStartContainers", has_sandbox, *sandbox),
        _condition("Initialized", *_initialized(views, facts, came_to)),
        _condition("Ready", *_ready(pod, containers)),
        _condition("ContainersReady", *containers),
    ]
    if facts.verdict is not None and facts.verdict.reason == EVICTED:
        found.insert(0, _condition("DisruptionTarget", True, "TerminationByKubelet", facts.verdict.message))
    return found


Finding = tuple[bool, str, str]
"""Status, reason, message of a condition."""


def _initialized(views: Sequence[ContainerView], facts: PodFacts, came_to: str) -> Finding:
    if came_to == "Succeeded":
        return True, "PodCompleted", ""
    if facts.initialized:
        return True, "", ""
    incomplete = [
        v.name
        for v in views
        if (v.role is Role.INIT and not (v.ended is not None and v.ended.code == 0))
        or (v.role is Role.SIDECAR and not v.started)
    ]
    if not incomplete:
        return True, "", ""
    return False, "ContainersNotInitialized", f"containers with incomplete status: [{' '.join(incomplete)}]"


def _containers_ready(views: Sequence[ContainerView], came_to: str) -> Finding:
    if came_to in ("Succeeded", "Failed"):
        return False, "PodCompleted" if came_to == "Succeeded" else "PodFailed", ""
    unready = [v.name for v in views if v.role is not Role.INIT and not v.ready]
    if not unready:
        return True, "", ""
    return False, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"


def _ready(pod: Json, containers: Finding) -> Finding:
    """Containers first, then the readiness gates, whose conditions somebody else writes into the status."""
    gates = pod["spec"].get("readinessGates")
    if not containers[0] or not gates:
        return containers
    given = {c["type"]: c["status"] for c in (pod.get("status") or {}).get("conditions") or ()}
    wrong: list[str] = []
    for gate in gates:
        type = gate["conditionType"]
        if type not in given:
            wrong.append(f'corresponding condition of pod readiness gate "{type}" does not exist.')
        elif given[type] != "True":
            wrong.append(f'the status of pod readiness gate "{type}" is not "True", but {given[type]}')
    return (False, "ReadinessGatesNotReady", ", ".join(wrong)) if wrong else containers


def _condition(type: str, status: bool, reason: str = "", message: str = "") -> Json:
    """None takes a key away in a patch: a condition that turns True loses its reason."""
    return {"type": type, "status": str(status), "reason": reason or None, "message": message or None}


def _since(condition: Json, before: Json | None, stamp: str) -> Json:
    same = before is not None and before["status"] == condition["status"]
    return {**condition, "lastTransitionTime": before["lastTransitionTime"] if before and same else stamp}
