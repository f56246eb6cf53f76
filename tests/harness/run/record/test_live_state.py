from __future__ import annotations

from typing import Any

from harness.kube.port import DEPLOYMENT, NODE, POD, POD_GROUP, EventType, Json
from harness.run.record.state import GangCount, LiveState


def pod(name: str, phase: str = "Running", ready: bool = True, app: str = "llm", **meta: Any) -> Json:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    metadata = {"name": name, "namespace": "inference", "labels": {"app": app}} | meta
    return {"metadata": metadata, "spec": {}, "status": {"phase": phase, "conditions": conditions}}


def member(name: str, node: str | None) -> Json:
    spec: Json = {"schedulingGroup": {"podGroupName": "gang-a"}} | ({"nodeName": node} if node else {})
    return pod(name, app="gang") | {"spec": spec}


def group(name: str, count: int) -> Json:
    spec = {"schedulingPolicy": {"gang": {"minCount": count}}}
    return {"metadata": {"name": name, "namespace": "inference"}, "spec": spec}


def test_counts_of_the_workload_and_nothing_else() -> None:
    state = LiveState("inference", "app=llm")
    deployment = {"metadata": {"name": "llm", "namespace": "inference"}}
    deployment["spec"] = {"replicas": 5, "template": {"metadata": {"labels": {"app": "llm"}}}}
    state.replace(DEPLOYMENT, [deployment])
    state.replace(
        POD,
        [
            pod("a"),
            pod("b", ready=False),
            pod("c", phase="Pending", ready=False),
            pod("d", deletionTimestamp="2026-01-01T00:00:00Z"),
            pod("e", phase="Failed", ready=False),
            pod("f", namespace="elsewhere"),
            pod("g", app="other"),
        ],
    )
    assert state.replicas_text() == "1/5 ready, 1 pending, 1 ending"
    state.apply(POD, EventType.MODIFIED, pod("c"))
    state.apply(POD, EventType.DELETED, pod("d"))
    assert state.replicas_text() == "2/5 ready"


def test_nodes_and_gangs() -> None:
    state = LiveState("inference", "app=llm")
    ready = {"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    state.replace(NODE, [ready, {"metadata": {"name": "n2"}}])
    state.replace(POD, [member("g0", "n1"), member("g1", None)])
    state.replace(POD_GROUP, [group("gang-b", 4), group("gang-a", 2)])
    assert state.nodes_text() == "1/2 ready"
    assert state.gangs == (GangCount("gang-a", 1, 2), GangCount("gang-b", 0, 4))
    assert state.gangs_text() == "gang-a 1/2, gang-b 0/4"
