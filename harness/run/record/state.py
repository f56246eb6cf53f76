"""What a person wants to know while a run goes on: a few counts, from the objects last seen. Never used for judging."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from harness.kube.port import DEPLOYMENT, NODE, POD, POD_GROUP, EventType, Json, Resource
from harness.selectors import parse_selector

_OVER = ("Succeeded", "Failed")
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class GangCount:
    name: str
    bound: int
    min: int


class LiveState:
    """Counts for one workload. ``waiting`` is None until the metric was read once."""

    def __init__(self, namespace: str, selector: str) -> None:
        self._namespace = namespace
        self._selector = parse_selector(selector)
        self._objects: dict[str, dict[_Key, Json]] = {}
        self.waiting: float | None = None

    def replace(self, resource: Resource, objects: Iterable[Json]) -> None:
        self._objects[resource.kind] = {_key(obj): obj for obj in objects}

    def apply(self, resource: Resource, type: EventType, obj: Json) -> None:
        known = self._objects.setdefault(resource.kind, {})
        if type is EventType.DELETED:
            known.pop(_key(obj), None)
        else:
            known[_key(obj)] = obj

    @property
    def nodes_total(self) -> int:
        return len(self._of(NODE))

    @property
    def nodes_ready(self) -> int:
        return sum(_condition(node, "Ready") for node in self._of(NODE))

    def nodes_ready_by_name(self) -> dict[str, bool]:
        return {str(node["metadata"]["name"]): _condition(node, "Ready") for node in self._of(NODE)}

    @property
    def replicas_desired(self) -> int:
        return sum(int(d.get("spec", {}).get("replicas", 1)) for d in self._deployments())

    @property
    def replicas_ready(self) -> int:
        return sum(_condition(pod, "Ready") for pod in self._pods() if not _terminating(pod))

    @property
    def pods_pending(self) -> int:
        return sum(_phase(pod) == "Pending" and not _terminating(pod) for pod in self._pods())

    @property
    def pods_terminating(self) -> int:
        return sum(_terminating(pod) for pod in self._pods())

    @property
    def gangs(self) -> tuple[GangCount, ...]:
        bound: dict[_Key, int] = {}
        for pod in self._of(POD):
            spec = pod.get("spec", {})
            group = (spec.get("schedulingGroup") or {}).get("podGroupName")
            if group and spec.get("nodeName") and _phase(pod) not in _OVER:
                key = (_key(pod)[0], group)
                bound[key] = bound.get(key, 0) + 1
        counts = [
            GangCount(key[1], bound.get(key, 0), _min_count(group))
            for key, group in self._objects.get(POD_GROUP.kind, {}).items()
        ]
        return tuple(sorted(counts, key=lambda gang: gang.name))

    def replicas_text(self) -> str:
        parts = [f"{self.replicas_ready}/{self.replicas_desired} ready"]
        parts += [f"{n} {word}" for n, word in ((self.pods_pending, "pending"), (self.pods_terminating, "ending")) if n]
        return ", ".join(parts)

    def nodes_text(self) -> str:
        return f"{self.nodes_ready}/{self.nodes_total} ready"

    def gangs_text(self) -> str:
        return ", ".join(f"{gang.name} {gang.bound}/{gang.min}" for gang in self.gangs)

    def _of(self, resource: Resource) -> Collection[Json]:
        return self._objects.get(resource.kind, {}).values()

    def _pods(self) -> list[Json]:
        return [
            pod
            for pod in self._of(POD)
            if self._selected(pod.get("metadata", {})) and _key(pod)[0] == self._namespace and _phase(pod) not in _OVER
        ]

    def _deployments(self) -> list[Json]:
        return [
            deployment
            for deployment in self._of(DEPLOYMENT)
            if _key(deployment)[0] == self._namespace
            and self._selected(deployment.get("spec", {}).get("template", {}).get("metadata", {}))
        ]

    def _selected(self, metadata: Json) -> bool:
        return self._selector.matches(metadata.get("labels") or {})


def _key(obj: Json) -> _Key:
    metadata = obj.get("metadata", {})
    return metadata.get("namespace", ""), metadata.get("name", "")


def _phase(pod: Json) -> str:
    return str(pod.get("status", {}).get("phase", ""))


def _terminating(obj: Json) -> bool:
    return bool(obj.get("metadata", {}).get("deletionTimestamp"))


def _condition(obj: Json, type: str) -> bool:
    conditions = obj.get("status", {}).get("conditions") or []
    return any(c.get("type") == type and c.get("status") == "True" for c in conditions)


def _min_count(group: Json) -> int:
    policy = group.get("spec", {}).get("schedulingPolicy") or {}
    return int((policy.get("gang") or {}).get("minCount") or 0)
