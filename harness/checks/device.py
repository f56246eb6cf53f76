"""No GPU is given out twice, no node refuses a pod that was bound to it, and a lost GPU is found again in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.sight import blind
from harness.checks.story import clock, moment, tell
from harness.checks.units import both, count, listed, scenario_s, span_ns
from harness.history.gpus import bought, changes
from harness.history.gpus import capacity as capacity_of
from harness.history.lives import (
    ByName,
    Json,
    Life,
    allocatable,
    disrupted,
    going,
    gpus_of,
    labels_of,
    lives,
    node_of,
    ready,
    running,
    terminal,
)
from harness.history.tables import ObjectEvent
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import DeviceSpec

NEEDS = ("machine_did_not_stall",)
PROVES = "a GPU given twice, another model than declared or a rejected pod"
"""Needs nothing to hold, unlike a GPU that was lost for too long."""
_BLINDING = frozenset({"Node", "Pod"})
_PRODUCT = "nvidia.com/gpu.product"
_REFUSALS = ("UnexpectedAdmissionError", "OutOf")
"""Reasons by which a kubelet rejects a pod for want of a device."""


@dataclass(frozen=True, slots=True)
class Doubled:
    """A moment in which pods that ran on a node had more GPUs than it has, or the same one."""

    node: str
    event: ObjectEvent
    pods: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Lost:
    """A time in which a Ready node offered fewer GPUs than it has, or was bought with."""

    node: str
    event: ObjectEvent
    end_ns: int
    missing: int
    found: bool
    never_there: bool

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.event.t_ns

    @property
    def verb(self) -> str:
        return "never showed" if self.never_there else "lacked"


@dataclass(frozen=True, slots=True)
class Other:
    """A pod that was bound to a node whose GPUs are none of those that the workload was declared for."""

    pod: str
    node: str
    product: str
    event: ObjectEvent

    def __str__(self) -> str:
        return f"{self.pod} on {self.node}, which has {self.product}"


def device(history: History, spec: DeviceSpec) -> Finding:
    """Put to the test by every pod with GPUs that was bound during the load, and by every GPU that was lost.

    What runs counts, not what is bound: a pod that its node rejects at once never had the GPU. A node that is about to
    go, or is not Ready, has lost no GPU: other checks judge that.

    UNKNOWN when no pod with GPUs was bound during the load and no GPU was lost, when the recording ends while a GPU is
    lost and its time is not up, and when the recorder was blind for nodes or pods and nothing was seen to be wrong.
    """
    pods = [pod for pod in lives(history.objects, "Pod") if gpus_of(pod.last)]
    nodes = [node for node in lives(history.objects, "Node") if bought(node.last)]
    limit_ns = span_ns(spec.lost_s_max, history.run.time_scale)
    given = [pod for pod in pods if _bound_ns(pod) >= history.run.load_start_ns]
    refused = [(pod, event) for pod in pods if (event := pod.when(rejected)) is not None]
    doubled = doubles(nodes, pods)
    lost = [span for node in nodes for span in losses(history, node)]
    late = [span for span in lost if span.length_ns > limit_ns]
    undecided = [span for span in lost if span not in late and not span.found and _to_the_end(history, span)]
    other = _other_products(spec, nodes, given)
    wrong = _wrong(history, spec, doubled, refused, late, other)
    gap = blind(history, _BLINDING)
    exercised = len(given) + len(lost) + len(refused)
    if wrong and (doubled or other or len(refused) > spec.admission_failures_max or gap is None):
        status, sentence = Status.FAIL, "; ".join(wrong)
    elif gap is not None:
        status, sentence = Status.UNKNOWN, f"nothing was seen to be wrong, but the recorder was blind for {gap.kind}"
    elif not exercised:
        status, sentence = Status.UNKNOWN, "no pod with GPUs was bound during the load and no GPU was lost"
    elif undecided:
        span = undecided[0]
        status = Status.UNKNOWN
        sentence = (
            f"{span.node} still lacked {count(span.missing, 'GPU')} when the recording ended, before its time was up"
        )
    else:
        status, sentence = Status.PASS, _good(history, given, lost, refused)
    numbers: dict[str, Value] = {
        "pods_given_gpus": len(given),
        "given_twice": len(doubled),
        "admission_failures": len(refused),
        "admission_failures_max": spec.admission_failures_max,
        "lost": len(lost),
        "found_again": sum(1 for span in lost if span.found),
        "lost_late": len(late),
        "lost_s_worst": scenario_s(max(s.length_ns for s in lost), history.run.time_scale) if lost else None,
        "lost_s_max": spec.lost_s_max,
        "unhealthy_in_use": len(_unhealthy(pods)),
        "wrong_gpu_product": len(other),
    }
    story = _story(history, spec, doubled, refused, late, other) if status is Status.FAIL else ""
    rows = _evidence(history, doubled, refused, lost, pods, other)
    own = () if doubled or other or len(refused) > spec.admission_failures_max else NEEDS
    return Finding("device", Role.CHECK, status, sentence, exercised, numbers, rows, own, story=story)


def _other_products(spec: DeviceSpec, nodes: list[Life], given: list[Life]) -> list[Other]:
    """A node that does not say what it has (feature discovery is late) is not held to be wrong."""
    if not spec.gpu_products:
        return []
    named = ByName(nodes)
    found = []
    for pod in given:
        bound = pod.when(lambda p: bool(node_of(p)))
        node = named.at(node_of(bound.object), bound.t_ns) if bound else None
        product = str(labels_of(node.last).get(_PRODUCT) or "") if node else ""
        if bound is not None and node is not None and product and product not in spec.gpu_products:
            found.append(Other(pod.name, node.name, product, bound))
    return found


def _bound_ns(pod: Life) -> int:
    bound = pod.when(lambda p: bool(node_of(p)))
    return bound.t_ns if bound else -1


def rejected(pod: Json) -> bool:
    status = pod.get("status", {})
    return status.get("phase") == "Failed" and str(status.get("reason") or "").startswith(_REFUSALS)


def device_ids(pod: Json) -> Iterator[str]:
    """The devices that the kubelet says a pod has; older ones do not say."""
    for resource in _resources(pod):
        yield str(resource.get("resourceID", ""))


def _resources(pod: Json) -> Iterator[Json]:
    for status in pod.get("status", {}).get("containerStatuses") or ():
        for allocated in status.get("allocatedResourcesStatus") or ():
            yield from allocated.get("resources") or ()


def doubles(nodes: list[Life], pods: list[Life]) -> list[Doubled]:
    """The first moment of each overlap. Pods come through one watch, so the order of its lines is what happened."""
    has = {node.uid: max(capacity_of(e.object) for e in node.seen) for node in nodes}
    named = ByName(nodes)
    on: dict[str, dict[str, Json]] = {}
    found: list[Doubled] = []
    known: set[tuple[str, tuple[str, ...]]] = set()
    for t_ns, life, event in changes(pods):
        obj = event.object if event is not None else None
        node = node_of(obj or life.last)
        here = on.setdefault(node, {})
        if obj is None or event is None or not running(obj) or terminal(obj):
            here.pop(life.name, None)
            continue
        here[life.name] = obj
        host = named.at(node, t_ns)
        if (why := _overlap(here, has[host.uid] if host else 0)) and (node, names := tuple(sorted(here))) not in known:
            known.add((node, names))
            found.append(Doubled(node, event, names, why))
    return found


def _overlap(here: dict[str, Json], gpus: int) -> str:
    if gpus and (held := sum(gpus_of(pod) for pod in here.values())) > gpus:
        return f"{held} GPUs are in use where there are {gpus}"
    seen: set[str] = set()
    for pod in here.values():
        own = set(device_ids(pod)) - {""}
        if twice := own & seen:
            return f"{listed(sorted(twice))} belongs to two pods"
        seen |= own
    return ""


def losses(history: History, node: Life) -> list[Lost]:
    found: list[Lost] = []
    full, start, there = bought(node.seen[0].object), None, False
    missing = 0
    end_ns = node.gone.t_ns if node.gone else history.recorded_until_ns
    for event in node.seen:
        obj = event.object
        full = max(full, bought(obj))
        if going(obj) or disrupted(obj) or not ready(obj) or allocatable(obj) >= full:
            if start is not None:
                back = allocatable(obj) >= full
                found.append(Lost(node.name, start, event.t_ns, missing, back, not there))
            start, missing = None, 0
        else:
            start = start or event
            missing = max(missing, full - allocatable(obj))
        there = there or allocatable(obj) >= full
    if start is not None:
        found.append(Lost(node.name, start, end_ns, missing, False, not there))
    # A new node shows its GPUs a moment after it is Ready: a span of that kind is a loss only once it lasts.
    return [span for span in found if not span.never_there or not span.found]


def _to_the_end(history: History, span: Lost) -> bool:
    return span.end_ns >= history.recorded_until_ns


def _wrong(
    history: History,
    spec: DeviceSpec,
    doubled: list[Doubled],
    refused: list[tuple[Life, ObjectEvent]],
    late: list[Lost],
    other: list[Other],
) -> list[str]:
    scale = history.run.time_scale
    parts = []
    if other:
        parts.append(
            f"{count(len(other), 'pod')} on another GPU than declared: {other[0]} ({listed(list(spec.gpu_products))})"
        )
    if doubled:
        first = doubled[0]
        parts.append(f"{first.node} gave GPUs out twice: {first.why} ({listed(list(first.pods))})")
    if len(refused) > spec.admission_failures_max:
        pod, event = refused[0]
        said = event.object.get("status", {}).get("message") or "no message"
        first_one = f"{pod.name} on {node_of(event.object)}: {said}"
        parts.append(f"{count(len(refused), 'pod')} rejected by the node (first: {first_one})")
    if late:
        worst = max(late, key=lambda span: span.length_ns)
        parts.append(
            f"{worst.node} {worst.verb} {count(worst.missing, 'GPU')} for {both(worst.length_ns, scale)} while Ready "
            f"(limit {spec.lost_s_max:.0f} s)"
        )
    return parts


def _good(history: History, given: list[Life], lost: list[Lost], refused: list[tuple[Life, ObjectEvent]]) -> str:
    longest = max((span.length_ns for span in lost), default=0)
    span = both(longest, history.run.time_scale)
    gone = f"{count(len(lost), 'loss', 'losses')} of GPUs, the longest {span}"
    got = f"{count(len(given), 'pod')} got GPUs during the load"
    return f"{got}, none given out twice, {len(refused)} rejected by a node, {gone if lost else 'no GPU lost'}"


def _story(
    history: History,
    spec: DeviceSpec,
    doubled: list[Doubled],
    refused: list[tuple[Life, ObjectEvent]],
    late: list[Lost],
    other: list[Other],
) -> str:
    if other and not doubled:
        return tell(
            promised=f"pods with GPUs run on {listed(list(spec.gpu_products))}",
            happened=str(other[0]),
            when=moment(history, other[0].event.t_ns),
            objects=[name for each in other for name in (each.pod, each.node)],
            cause=f"{other[0].node} came with {other[0].product}",
            change="narrow the requirements of its pool to the GPUs that the workload was measured on",
        )
    if doubled:
        first = doubled[0]
        return tell(
            promised="a GPU belongs to one pod at a time",
            happened=f"on {first.node} {first.why}",
            when=moment(history, first.event.t_ns),
            objects=[first.node, *first.pods],
        )
    if len(refused) > spec.admission_failures_max:
        pod, event = refused[0]
        return tell(
            promised=f"a pod that is bound is admitted by its node (at most {spec.admission_failures_max} are not)",
            happened=f"{count(len(refused), 'pod')} rejected, first {pod.name}",
            when=moment(history, event.t_ns),
            objects=[name for pod, event in refused for name in (pod.name, node_of(event.object))],
            cause=str(event.object.get("status", {}).get("message") or ""),
            change="let the node be schedulable only once its device plugin has registered",
        )
    worst = max(late, key=lambda span: span.length_ns)
    span = both(worst.length_ns, history.run.time_scale)
    return tell(
        promised=f"a GPU that is lost is back within {spec.lost_s_max:.0f} s",
        happened=f"{worst.node} {worst.verb} {count(worst.missing, 'GPU')} for {span}",
        when=f"since {clock(history, worst.event.t_ns)}",
        objects=[worst.node],
        change="look at the device plugin of that node, and replace nodes whose GPUs do not come back",
    )


def _unhealthy(pods: list[Life]) -> list[tuple[Life, ObjectEvent]]:
    """Pods that went on with a device that their kubelet calls unhealthy."""

    def sick(pod: Json) -> bool:
        return running(pod) and any(resource.get("health") == "Unhealthy" for resource in _resources(pod))

    return [(pod, event) for pod in pods if (event := pod.when(sick)) is not None]


def _evidence(
    history: History,
    doubled: list[Doubled],
    refused: list[tuple[Life, ObjectEvent]],
    lost: list[Lost],
    pods: list[Life],
    other: list[Other],
) -> tuple[Evidence, ...]:
    scale = history.run.time_scale
    found = [
        Evidence(
            f"objects:{d.event.index}", d.event.t_ns, f"{d.node}: {d.why}", {"node": d.node, "pods": ", ".join(d.pods)}
        )
        for d in doubled
    ]
    for each in other:
        text, about = f"{each}, which was not declared", {"pod": each.pod, "node": each.node, "product": each.product}
        found.append(Evidence(f"objects:{each.event.index}", each.event.t_ns, text, {**about}))
    for pod, event in refused:
        said = str(event.object.get("status", {}).get("message") or "")
        facts: dict[str, Value] = {"pod": pod.name, "node": node_of(event.object)}
        found.append(Evidence(f"objects:{event.index}", event.t_ns, f"{pod.name} was rejected: {said}", facts))
    for span in sorted(lost, key=lambda span: -span.length_ns):
        end = "found again" if span.found else "not found again"
        text = f"{span.node} {span.verb} {count(span.missing, 'GPU')} for {both(span.length_ns, scale)}, {end}"
        found.append(Evidence(f"objects:{span.event.index}", span.event.t_ns, text, {"node": span.node}))
    for pod, event in _unhealthy(pods):
        text = f"{pod.name} ran on with an unhealthy GPU"
        found.append(Evidence(f"objects:{event.index}", event.t_ns, text, {"pod": pod.name}))
    return tuple(found)
