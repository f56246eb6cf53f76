"""What a replica that does not serve waits for: in people's words, and by one word for programs.

The words of a replica that is late are those of the moment at which it became late: what came to it afterwards, because
a fault was healed, say, explains nothing.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from harness.history.lives import Json, Life, allocatable, condition, node_of, ready


class Wait(enum.StrEnum):
    """The sub-causes, in the order of the stages at which they hold a replica up."""

    NAMESPACE_QUOTA = "quota of the namespace"
    ADMISSION = "admission of the pod"
    GATE = "scheduling gate"
    SCHEDULER = "scheduler"
    NO_NODE_DECIDED = "no node decided"
    CLOUD_QUOTA = "quota of the cloud"
    CLOUD_CAPACITY = "capacity of the cloud"
    NODE_START = "start of the node"
    DEVICE_PLUGIN = "device plugin"
    PLACEMENT = "placement"
    IMAGE = "image"
    MODEL = "model load"
    PROBE = "readiness probe"
    TRAFFIC = "traffic"


@dataclass(frozen=True, slots=True)
class Waiting:
    stage: str
    what: Wait
    words: str


_QUOTA_CODES = ("VcpuLimitExceeded", "MaxSpotInstanceCountExceeded", "LimitExceeded", "QUOTA_EXCEEDED", "QuotaExceeded")
"""By which clouds refuse an instance because of the account's own limit (chaos.md lists Karpenter's; the last two are
GCP's and Azure's). ``RequestLimitExceeded`` is none: it is too many calls."""


def never_created(refusals: str) -> Waiting:
    """``refusals``: what the owner's condition or Events said of pods that could not be made."""
    if "webhook" in refusals:
        return Waiting("T1", Wait.ADMISSION, f"admission: the pod was never created ({_short(refusals)})")
    said = f" ({_short(refusals)})" if refusals else ""
    return Waiting("T1", Wait.NAMESPACE_QUOTA, f"quota: the pod was never created{said}")


def waiting_in(stage: str, pod: Json, claim: Json | None, node: Json | None, refusals: str, probe: str = "") -> Waiting:
    """What a pod whose first missed mark is ``stage`` waits for. ``claim`` and ``node`` are those made for it, as they
    are at that moment; ``refusals`` what the cloud said to orders made since it found no room, ``probe`` what the
    kubelet said last of its readiness probe: a server that answers, if only with an error, has loaded its model."""
    match stage:
        case "T2" if condition(pod, "PodScheduled").get("reason") == "SchedulingGated":
            return Waiting(stage, Wait.GATE, "quota: its pod is gated")
        case "T2":
            return Waiting(stage, Wait.SCHEDULER, "the scheduler: neither placed nor refused")
        case "T3" | "T4":
            return _without_node(stage, claim, refusals)
        case "T5" if node is not None and ready(node) and not allocatable(node):
            return Waiting(stage, Wait.DEVICE_PLUGIN, "the GPU to appear on its node")
        case "T5":
            return Waiting(stage, Wait.NODE_START, "its node to start")
        case "T6" if node_of(pod):
            return Waiting(stage, Wait.IMAGE, "its image")
        case "T6":
            return Waiting(stage, Wait.PLACEMENT, "a node: none was given to it")
        case "T7" if "statuscode" in probe:
            return Waiting(stage, Wait.PROBE, f"its probe to pass ({_short(probe)})")
        case "T7":
            return Waiting(stage, Wait.MODEL, "its model to warm up")
    return Waiting("T8", Wait.TRAFFIC, "traffic: it was ready, but no first token came from it")


def _without_node(stage: str, claim: Json | None, refusals: str) -> Waiting:
    if claim is not None and condition(claim, "Launched").get("status") == "True":
        name = claim["metadata"]["name"]
        return Waiting("T4", Wait.NODE_START, f"its node to start (NodeClaim {name} has not registered)")
    if is_quota(refusals):
        return Waiting(stage, Wait.CLOUD_QUOTA, f"quota: the cloud refused an instance ({_short(refusals)})")
    if claim is None and not refusals:
        return Waiting("T3", Wait.NO_NODE_DECIDED, "cloud capacity: no node was decided for it")
    said = f" ({_short(refusals)})" if refusals else ""
    return Waiting(stage, Wait.CLOUD_CAPACITY, f"cloud capacity: its NodeClaim got no instance{said}")


def is_quota(said: str) -> bool:
    return any(code in said for code in _QUOTA_CODES) and "RequestLimitExceeded" not in said


def refused(claim: Life) -> list[tuple[int, str]]:
    """When and with which words the cloud refused an instance to a NodeClaim."""
    found = []
    for event in claim.seen:
        launched = condition(event.object, "Launched")
        if launched.get("status") != "True" and (said := str(launched.get("message") or "")):
            found.append((event.t_ns, said))
    return found


def _short(said: str) -> str:
    """The cloud's own words, without those around them."""
    inner = said.rpartition("insufficient capacity, ")[2].rpartition("creating instance, ")[2]
    return inner if len(inner) <= 120 else f"{inner[:117]}..."
