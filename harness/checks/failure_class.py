"""The kind of trouble behind a fail, by one name, and its sub-cause: what alerts and dashboards are sorted by.

Seven classes cover what goes wrong between a rise of load and a served token, and on the way back. A fail that is none
of them, such as a cut stream, has no class. The names stand in the finding's numbers as ``failure_class`` and
``sub_cause``, for programs, and at the end of its story, for people.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

from harness.checks.story import LABELS
from harness.checks.units import span_ns
from harness.history.autoscaler import autoscalers, pod_metrics, replicas_min, told
from harness.history.gpus import bought
from harness.history.lives import Json, allocatable, condition, disrupted, going, gpus_of, lives, node_of
from harness.history.waiting import Wait, is_quota, refused
from harness.verdict import Finding, Status

if TYPE_CHECKING:
    from harness.history.reader import History

LABEL = LABELS[-1]
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"


class FailureClass(enum.StrEnum):
    NO_NEW_CAPACITY = "scaled, but no new capacity"
    NODE_WITHOUT_POD = "node up, but its pod is Pending"
    RUNNING_WITHOUT_TRAFFIC = "Running, but no traffic"
    OSCILLATION = "oscillation"
    CANNOT_SCALE_IN = "cannot scale in"
    WRONG_GPU_MODEL = "wrong GPU model"
    COST_GROWTH = "cost growth"


@dataclass(frozen=True, slots=True)
class Classified:
    failure: FailureClass
    sub_cause: str


_OF_WAIT = {
    Wait.NAMESPACE_QUOTA: FailureClass.NO_NEW_CAPACITY,
    Wait.ADMISSION: FailureClass.NO_NEW_CAPACITY,
    Wait.GATE: FailureClass.NO_NEW_CAPACITY,
    Wait.NO_NODE_DECIDED: FailureClass.NO_NEW_CAPACITY,
    Wait.CLOUD_QUOTA: FailureClass.NO_NEW_CAPACITY,
    Wait.CLOUD_CAPACITY: FailureClass.NO_NEW_CAPACITY,
    Wait.NODE_START: FailureClass.NO_NEW_CAPACITY,
    Wait.DEVICE_PLUGIN: FailureClass.NODE_WITHOUT_POD,
    Wait.PLACEMENT: FailureClass.NODE_WITHOUT_POD,
    Wait.SCHEDULER: FailureClass.NODE_WITHOUT_POD,
    Wait.IMAGE: FailureClass.RUNNING_WITHOUT_TRAFFIC,
    Wait.MODEL: FailureClass.RUNNING_WITHOUT_TRAFFIC,
    Wait.PROBE: FailureClass.RUNNING_WITHOUT_TRAFFIC,
    Wait.TRAFFIC: FailureClass.RUNNING_WITHOUT_TRAFFIC,
}


def with_class(history: History, finding: Finding) -> Finding:
    """The finding with the class of its fail, where it has one."""
    classify = _BY_CHECK.get(finding.check)
    if classify is None or finding.status is not Status.FAIL or (found := classify(history, finding)) is None:
        return finding
    numbers = {**finding.numbers, "failure_class": found.failure.value, "sub_cause": found.sub_cause}
    story = f"{finding.story} {LABEL} {found.failure.value}: {found.sub_cause}." if finding.story else ""
    return replace(finding, numbers=numbers, story=story)


def _scale_up(history: History, finding: Finding) -> Classified | None:
    """By what the first late replica waited for. Of replicas that nobody decided no stage says anything."""
    waits = [str(row.facts["waited_for"]) for row in finding.evidence if row.facts.get("waited_for")]
    return Classified(_OF_WAIT[Wait(waits[0])], waits[0]) if waits else None


def _scale_down(history: History, finding: Finding) -> Classified | None:
    numbers = finding.numbers
    if numbers.get("late"):
        over_ns = next((int(row.facts["over_ns"] or 0) for row in finding.evidence if "over_ns" in row.facts), 0)
        limit_ns = span_ns(float(numbers.get("floor_s_max") or 0), history.run.time_scale)
        return Classified(FailureClass.CANNOT_SCALE_IN, _why_kept(history, over_ns + limit_ns))
    if numbers.get("reversals"):
        return Classified(FailureClass.OSCILLATION, _why_swings(history))
    if numbers.get("nodes_short_lived"):
        return Classified(FailureClass.OSCILLATION, "nodes come and go")
    return None


def _controllers(history: History, finding: Finding) -> Classified | None:
    numbers = finding.numbers
    if numbers.get("targets_with_rival_autoscalers"):
        return Classified(FailureClass.OSCILLATION, "two autoscalers")
    if numbers.get("fights"):
        return Classified(FailureClass.OSCILLATION, "two writers")
    if numbers.get("oscillations"):
        return Classified(FailureClass.OSCILLATION, _why_swings(history))
    return None


def _device(history: History, finding: Finding) -> Classified | None:
    numbers = finding.numbers
    if numbers.get("wrong_gpu_product"):
        return Classified(FailureClass.WRONG_GPU_MODEL, "pool delivers another model than was declared")
    if numbers.get("lost_late"):
        return Classified(FailureClass.NODE_WITHOUT_POD, Wait.DEVICE_PLUGIN.value)
    return None


def _capacity(history: History, finding: Finding) -> Classified | None:
    if finding.numbers.get("pods_short_late"):
        refusals = " ".join(said for claim in lives(history.objects, "NodeClaim") for _, said in refused(claim))
        wait = Wait.CLOUD_CAPACITY if refusals else Wait.NO_NODE_DECIDED
        return Classified(FailureClass.NO_NEW_CAPACITY, (Wait.CLOUD_QUOTA if is_quota(refusals) else wait).value)
    return Classified(FailureClass.COST_GROWTH, _why_costly(history, finding))


_BY_CHECK = {
    "scale_up": _scale_up,
    "scale_down": _scale_down,
    "controllers": _controllers,
    "device": _device,
    "capacity": _capacity,
}


def _why_kept(history: History, due_ns: int) -> str:
    """By what the autoscaler says from when it should have been back until the load ends: mostly it reads too much, it
    reads nothing, or it simply does not act."""
    for scaler in autoscalers(history):
        late = [event.object for event in scaler.seen if due_ns < event.t_ns <= history.run.load_end_ns]
        said = late or [scaler.at(due_ns) or scaler.last]
        if condition(said[-1], "ScalingActive").get("status") == "False":
            return "autoscaler without a metric"
        if 2 * sum(_high(one) for one in said) > len(said):
            return "metric stays high without load"
    return "autoscaler does not lower the size"


def _high(scaler: Json) -> bool:
    """Whether what it reads of some metric forbids the floor."""
    return any(
        value > kept * _TOLERANCE or _asks_for_more(scaler, value / kept)
        for metric, kept in pod_metrics(scaler).items()
        if (value := told(scaler, metric)) is not None
    )


_TOLERANCE = 0.9
"""So near to what it keeps an HPA leaves the size as it is."""


def _asks_for_more(scaler: Json, ratio: float) -> bool:
    """Whether by the HPA's own sum (size x read / kept, rounded up) what it reads needs more than its floor."""
    size = int((scaler.get("status") or {}).get("currentReplicas") or 0)
    return ceil(size * ratio) > replicas_min(scaler)


def _why_swings(history: History) -> str:
    windows = [_down_window_s(scaler.last) for scaler in autoscalers(history)]
    return "no stabilisation window" if any(window == 0 for window in windows) else "controller changes its mind"


def _down_window_s(scaler: Json) -> float:
    behavior = scaler.get("spec", {}).get("behavior") or {}
    window = (behavior.get("scaleDown") or {}).get("stabilizationWindowSeconds")
    return 300.0 if window is None else float(window)


def _why_costly(history: History, finding: Finding) -> str:
    if finding.numbers.get("instances_without_node"):
        return "instances that are paid for and never register"
    unused = [node for node in lives(history.objects, "Node") if node.gone is None and bought(node.last)]
    pods = [pod.last for pod in lives(history.objects, "Pod") if pod.gone is None]
    here = {node.name: [pod for pod in pods if node_of(pod) == node.name] for node in unused}
    if any(not allocatable(node.last) for node in unused):
        return "nodes that never show their GPUs"
    kept = [node for node in unused if node.when(_keeps) or any(_keeps(pod) for pod in here[node.name])]
    if kept:
        return "consolidation blocked: do-not-disrupt"
    idle = [n for n in unused if not (going(n.last) or disrupted(n.last)) and not any(map(gpus_of, here[n.name]))]
    return "nodes without a pod that uses their GPUs" if idle else "more or dearer nodes than needed"


def _keeps(obj: Json) -> bool:
    return bool((obj["metadata"].get("annotations") or {}).get(DO_NOT_DISRUPT))
