"""What kubectl shows of a pod: readiness, the one word for its state, restarts (printPod of kubernetes v1.37)."""

from __future__ import annotations

from datetime import datetime

from fakes.clock import parse_stamp
from fakes.kube.cells import at, condition, duration
from harness.kube.port import Json


def _is_sidecar(obj: Json, name: str) -> bool:
    found: Json = next((c for c in at(obj, "spec", "initContainers", default=[]) if c.get("name") == name), {})
    return bool(found.get("restartPolicy") == "Always")


def pod_ready(obj: Json) -> str:
    initial = at(obj, "spec", "initContainers", default=[])
    total = len(at(obj, "spec", "containers", default=[])) + sum(_is_sidecar(obj, c.get("name")) for c in initial)
    ready = sum(
        1
        for s in at(obj, "status", "containerStatuses", default=[])
        if s.get("ready") and at(s, "state", "running") is not None
    )
    sidecars = at(obj, "status", "initContainerStatuses", default=[])
    ready += sum(1 for s in sidecars if s.get("ready") and s.get("started") and _is_sidecar(obj, s.get("name")))
    return f"{ready}/{total}"


def _initial_reason(obj: Json) -> str | None:
    """What an unfinished initialisation shows."""
    statuses = at(obj, "status", "initContainerStatuses", default=[])
    for i, status in enumerate(statuses):
        ended, waiting = at(status, "state", "terminated"), at(status, "state", "waiting")
        if ended is not None and not ended.get("exitCode"):
            continue
        if _is_sidecar(obj, status.get("name")) and status.get("started"):
            continue
        if ended is not None:
            return f"Init:{_ended_reason(ended)}"
        if waiting and waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{i}/{len(at(obj, 'spec', 'initContainers', default=[]))}"
    return None


def _ended_reason(ended: Json) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def pod_status(obj: Json) -> str:
    phase = at(obj, "status", "phase", default="")
    reason = at(obj, "status", "reason") or phase
    scheduled = condition(obj, "PodScheduled") or {}
    if scheduled.get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    initial = _initial_reason(obj)
    if initial is not None:
        reason = initial
    if initial is None or (condition(obj, "Initialized") or {}).get("status") == "True":
        reason = _running_reason(obj, reason)
    if at(obj, "metadata", "deletionTimestamp"):
        if at(obj, "status", "reason") == "NodeLost":
            return "Unknown"
        return "Terminating" if phase not in ("Succeeded", "Failed") else str(reason)
    return str(reason)


def _running_reason(obj: Json, reason: str) -> str:
    running, failed = False, ""
    for status in reversed(at(obj, "status", "containerStatuses", default=[])):
        waiting, ended = at(status, "state", "waiting"), at(status, "state", "terminated")
        if waiting and waiting.get("reason"):
            reason = waiting["reason"]
        elif ended is not None:
            reason = _ended_reason(ended)
            failed = reason if ended.get("exitCode") else failed
        elif status.get("ready") and at(status, "state", "running") is not None:
            running = True
    if reason == "Completed":
        ready = (condition(obj, "Ready") or {}).get("status") == "True"
        return "Running" if running and ready else failed or ("NotReady" if running else reason)
    return reason


def restarts(obj: Json, now: datetime) -> str:
    initial = at(obj, "status", "initContainerStatuses", default=[])
    counted: list[Json] = [s for s in initial if _is_sidecar(obj, s.get("name"))]
    if _initial_reason(obj) is None:
        counted += at(obj, "status", "containerStatuses", default=[])
    else:
        counted = initial
    count = sum(s.get("restartCount", 0) for s in counted)
    ends = [at(s, "lastState", "terminated", "finishedAt") for s in counted]
    last = max((e for e in ends if e), default=None)
    if not count or last is None:
        return str(count)
    return f"{count} ({duration((now - parse_stamp(last)).total_seconds())} ago)"
