"""status, scale, eviction, binding, log, and subresources that are not there."""

from __future__ import annotations

from typing import Any

from case import JSON_PATCH, MERGE, STRATEGIC, Case, Explained, Step, case, get, patch, post, put, setup, taken_for_ours
from wire_bodies import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HPAS,
    NODES,
    PDBS,
    PODS,
    REPLICA_SETS,
    SELECTOR,
    Json,
    config_map,
    deployment,
    hpa,
    named,
    pdb,
    pod,
)  # fmt: skip

D, P, B = f"{DEPLOYMENTS}/a", f"{PODS}/a", f"{PDBS}/a"
DEPLOYED = setup("POST", DEPLOYMENTS, deployment(), save="a")
POD = setup("POST", PODS, pod(), save="a")
BOUND = setup("POST", PODS, pod("a", nodeName="n1"), save="a")
BIND = {"metadata": {"name": "a"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}}


def scale(replicas: Any, **meta: Any) -> Json:
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a", **meta},
        "spec": {"replicas": replicas},
    }


def eviction(name: str = "a", **options: Any) -> Json:
    found: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return found | {"deleteOptions": options} if options else found


def running(name: str = "a", ready: bool = True) -> tuple[Step, ...]:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    return (
        setup("POST", PODS, pod(name, nodeName="n1"), save=name),
        setup("PATCH", f"{PODS}/{name}/status", {"status": status}, type=MERGE),
    )


def budget(spec: Json | None = None, name: str = "a", **status: Any) -> tuple[Step, ...]:
    told = {
        "observedGeneration": 1,
        "disruptionsAllowed": 0,
        "currentHealthy": 1,
        "desiredHealthy": 1,
        "expectedPods": 1,
    } | status
    return (
        setup("POST", PDBS, pdb(name, selector=SELECTOR, **(spec or {"minAvailable": 1}))),
        setup("PATCH", f"{PDBS}/{name}/status", {"status": told}, type=MERGE),
    )


NOT_OURS = (*taken_for_ours(), Explained("[0].body.details", "as the status: a cause is named"))

STATUS = [
    case("status by merge patch", DEPLOYED, patch(f"{D}/status", {"status": {"replicas": 2, "readyReplicas": 1}}), get(f"{D}/status"), get(D)),
    case("status by PUT", DEPLOYED, put(f"{D}/status", deployment() | {"status": {"replicas": 2, "observedGeneration": 1}})),
    case("status PUT leaves the spec", DEPLOYED, put(f"{D}/status", deployment("a", replicas=9) | {"status": {"replicas": 2}})),
    case("a PUT leaves the status", DEPLOYED, setup("PATCH", f"{D}/status", {"status": {"replicas": 2}}, type=MERGE),
         put(D, deployment("a", replicas=3) | {"status": {"replicas": 7}})),
    case("status PUT with labels", DEPLOYED, put(f"{D}/status", {**deployment(), "metadata": {"name": "a", "labels": {"x": "y"},
         "annotations": {"n": "1"}}, "status": {"replicas": 2}})),
    case("status of a node with labels", setup("POST", NODES, {"metadata": {"name": "{ns}-n"}}), patch(f"{NODES}/{{ns}}-n/status", {
         "metadata": {"labels": {"x": "y"}}, "spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "4000m"}}})),
    case("status with a stale version", DEPLOYED, setup("PATCH", D, {"spec": {"replicas": 4}}, type=MERGE),
         put(f"{D}/status", {**deployment(), "metadata": {"name": "a", "resourceVersion": "{a.version}"}, "status": {}}), error=True),
    case("status with counts of zero", DEPLOYED, patch(f"{D}/status", {"status": {"replicas": 0, "observedGeneration": 1}})),
    case("status conditions by key", DEPLOYED, setup("PATCH", f"{D}/status", {"status": {"conditions": [
         {"type": "Available", "status": "True", "reason": "r", "message": "m"}]}}, type=MERGE),
         patch(f"{D}/status", {"status": {"conditions": [{"type": "Progressing", "status": "True", "reason": "r", "message": "m"}]}}, STRATEGIC)),
    case("status of a pod by strategic patch", POD, patch(f"{P}/status", {"status": {"phase": "Running", "podIP": "10.1.1.1", "podIPs": [
         {"ip": "10.1.1.1"}], "conditions": [{"type": "Ready", "status": "True"}]}}, STRATEGIC), pods=True),
    case("status of a pod with an IP alone", POD, patch(f"{P}/status", {"status": {"podIP": "10.1.1.1"}}), pods=True),
    case("a pod's spec by status", POD, patch(f"{P}/status", {"spec": {"nodeName": "x"}, "status": {"reason": "r"}}), pods=True),
    case("status with a wrong type", DEPLOYED, patch(f"{D}/status", {"status": {"replicas": "two"}}), error=True,
         explained=(Explained("[0].body.*message", "the real message repeats the whole patched object in the order of Go's fields"),)),
    case("status below zero", DEPLOYED, patch(f"{D}/status", {"status": {"replicas": -1}}), error=True),
    case("more ready than there are", DEPLOYED, patch(f"{D}/status", {"status": {"replicas": 1, "readyReplicas": 2}}), error=True),
    case("status of an autoscaler", setup("POST", HPAS, hpa()), patch(f"{HPAS}/a/status", {"status": {"currentReplicas": 1, "desiredReplicas": 2}})),
    case("status of a ConfigMap", setup("POST", CONFIG_MAPS, config_map()), get(f"{CONFIG_MAPS}/a/status"), error=True),
    case("status of what is not there", patch(f"{D}/status", {"status": {}}), error=True),
    case("POST to a status", DEPLOYED, post(f"{D}/status", deployment()), error=True),
]  # fmt: skip

SCALE = [
    case("scale", DEPLOYED, get(f"{D}/scale"), put(f"{D}/scale", scale(3)), get(D)),
    case("scale of a ReplicaSet", setup("POST", REPLICA_SETS, deployment()), get(f"{REPLICA_SETS}/a/scale"), put(f"{REPLICA_SETS}/a/scale", scale(0))),
    case("scale by merge patch", DEPLOYED, patch(f"{D}/scale", {"spec": {"replicas": 4}})),
    case("scale by JSON patch", DEPLOYED, patch(f"{D}/scale", [{"op": "replace", "path": "/spec/replicas", "value": 4}], JSON_PATCH)),
    case("scale to zero", DEPLOYED, patch(f"{D}/scale", {"spec": {"replicas": 0}}), get(f"{D}/scale")),
    case("scale below zero", DEPLOYED, patch(f"{D}/scale", {"spec": {"replicas": -1}}), error=True),
    case("scale with a stale version", DEPLOYED, setup("PATCH", D, {"spec": {"paused": True}}, type=MERGE),
         put(f"{D}/scale", scale(3, resourceVersion="{a.version}")), error=True),
    case("scale with the version that is there", DEPLOYED, put(f"{D}/scale", scale(3, resourceVersion="{a.version}"))),
    case("scale of another name", DEPLOYED, put(f"{D}/scale", {**scale(3), "metadata": {"name": "b"}}), error=True),
    case("scale with a wrong type", DEPLOYED, put(f"{D}/scale", scale("many")), error=True),
    case("scale of another kind", DEPLOYED, put(f"{D}/scale", deployment()), error=True),
    case("scale of what is not there", put(f"{D}/scale", scale(1)), error=True),
    case("scale of a pod", POD, get(f"{P}/scale"), error=True, pods=True),
    case("a scale with its status", DEPLOYED, setup("PATCH", f"{D}/status", {"status": {"replicas": 2}}, type=MERGE), get(f"{D}/scale")),
    case("scale as a dry run", DEPLOYED, put(f"{D}/scale?dryRun=All", scale(3)), get(f"{D}/scale")),
    case("POST to a scale", DEPLOYED, post(f"{D}/scale", scale(3)), error=True),
]  # fmt: skip

EVICTION = [
    case("evict a pod without a budget", *running(), post(f"{P}/eviction", eviction()), get(P), pods=True),
    case("evict with a grace", *running(), post(f"{P}/eviction", eviction(gracePeriodSeconds=5)), get(P), pods=True),
    case("evict with what is allowed", *running(), *budget(disruptionsAllowed=1, currentHealthy=2), post(f"{P}/eviction", eviction()), get(B), get(P), pods=True),
    case("evict with nothing allowed", *running(), *budget(), post(f"{P}/eviction", eviction()), get(P), error=True, pods=True),
    case("two evictions, one allowed", *running(), *running("b"), *budget(disruptionsAllowed=1, currentHealthy=2),
         post(f"{P}/eviction", eviction()), post(f"{PODS}/b/eviction", eviction("b")), get(B), error=True, pods=True),
    case("evict before the budget was looked at", *running(), setup("POST", PDBS, pdb()), post(f"{P}/eviction", eviction()), error=True, pods=True),
    case("evict under two budgets", *running(), *budget(), *budget(name="b"), post(f"{P}/eviction", eviction()), error=True, pods=True),
    case("evict a pending pod", POD, *budget(), post(f"{P}/eviction", eviction()), get(P), error=True, pods=True),
    case("evict a finished pod", BOUND, setup("PATCH", f"{P}/status", {"status": {"phase": "Succeeded"}}, type=MERGE), *budget(),
         post(f"{P}/eviction", eviction()), get(P), error=True, pods=True),
    case("evict a pod that is going", *running(), setup("DELETE", P), *budget(), post(f"{P}/eviction", eviction()), error=True, pods=True),
    case("evict an unready pod within the budget", *running(ready=False), *budget(), post(f"{P}/eviction", eviction()), get(B), pods=True),
    case("evict an unready pod beyond the budget", *running(ready=False), *budget(currentHealthy=0), post(f"{P}/eviction", eviction()), error=True, pods=True),
    case("evict an unready pod, always allowed", *running(ready=False), *budget({"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
         currentHealthy=0), post(f"{P}/eviction", eviction()), pods=True),
    case("evict as a dry run", *running(), *budget(disruptionsAllowed=1, currentHealthy=2), post(f"{P}/eviction", eviction(dryRun=["All"])), get(P), get(B), pods=True),
    case("evict by a dry run in the query", *running(), post(f"{P}/eviction?dryRun=All", eviction()), get(P), pods=True),
    case("evict another name", *running(), post(f"{P}/eviction", eviction("b")), error=True, pods=True),
    case("evict without a name", *running(), post(f"{P}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction"}), error=True, pods=True),
    case("evict what is not there", post(f"{P}/eviction", eviction()), error=True),
    case("evict by uid", *running(), post(f"{P}/eviction", eviction(preconditions={"uid": "{a.uid}"})), pods=True),
    case("evict by another uid", *running(), post(f"{P}/eviction", eviction(preconditions={"uid": "00000000-0000-4000-8000-000000000000"})),
         get(P), error=True, pods=True),
    case("evict with a body of another kind", *running(), post(f"{P}/eviction", BIND | {"kind": "Binding", "apiVersion": "v1"}), error=True, pods=True),
    case("GET of an eviction", *running(), get(f"{P}/eviction"), error=True, pods=True),
]  # fmt: skip

BINDING = [
    case("bind", POD, post(f"{P}/binding", BIND), get(P), pods=True),
    case("bind twice", POD, post(f"{P}/binding", BIND), post(f"{P}/binding", BIND), error=True, pods=True),
    case("bind elsewhere", POD, post(f"{P}/binding", BIND), post(f"{P}/binding", {**BIND, "target": {"kind": "Node", "name": "n2"}}), error=True, pods=True),
    case("bind to no node", POD, post(f"{P}/binding", {"metadata": {"name": "a"}, "target": {}}), error=True, pods=True, explained=NOT_OURS),
    case("bind without a target", POD, post(f"{P}/binding", {"metadata": {"name": "a"}}), error=True, pods=True, explained=NOT_OURS),
    case("bind to another kind", POD, post(f"{P}/binding", {"metadata": {"name": "a"}, "target": {"kind": "Pod", "name": "n1"}}), error=True, pods=True, explained=NOT_OURS),
    case("bind another name", POD, post(f"{P}/binding", {**BIND, "metadata": {"name": "b"}}), error=True, pods=True),
    case("bind what is not there", post(f"{P}/binding", BIND), error=True),
    case("bind by uid", POD, post(f"{P}/binding", {**BIND, "metadata": {"name": "a", "uid": "{a.uid}"}}), pods=True),
    case("bind by another uid", POD, post(f"{P}/binding", {**BIND, "metadata": {"name": "a", "uid": "00000000-0000-4000-8000-000000000000"}}),
         error=True, pods=True),
    case("bind a pod that is going", setup("POST", PODS, {**pod(), "metadata": {"name": "a", "finalizers": ["example.com/hold"]}}),
         setup("DELETE", P), post(f"{P}/binding", BIND), error=True, pods=True),
    case("bind a gated pod", setup("POST", PODS, pod("a", schedulingGates=[{"name": "example.com/g"}])), post(f"{P}/binding", BIND), get(P), error=True, pods=True),
    case("bind with annotations", POD, post(f"{P}/binding", {**BIND, "metadata": {"name": "a", "annotations": {"x": "y"}}}), get(P), pods=True),
    case("a gate goes", setup("POST", PODS, pod("a", schedulingGates=[{"name": "example.com/g"}])), get(P), patch(P, {"spec": {"schedulingGates": None}}), pods=True),
    case("a gate comes", POD, patch(P, {"spec": {"schedulingGates": [{"name": "example.com/g"}]}}), error=True, pods=True),
]  # fmt: skip

OTHERS = [
    case("log of what is not there", get(f"{P}/log"), error=True),
    case("log of a container that is not there", POD, get(f"{P}/log?container=none"), error=True, pods=True),
    case("log of one of several", setup("POST", PODS, pod("a", containers=[{"name": "x", "image": "x"}, {"name": "y", "image": "y"}])),
         get(f"{P}/log"), error=True, pods=True),
    case("log of a pod that runs nowhere", POD, get(f"{P}/log"), pods=True),
    case("log with a negative tail", POD, get(f"{P}/log?tailLines=-1"), error=True, pods=True),
    case("log with a limit of zero", POD, get(f"{P}/log?limitBytes=0"), error=True, pods=True),
    case("log with two beginnings", POD, get(f"{P}/log?sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z"), error=True, pods=True),
    case("log with a tail that is no number", POD, get(f"{P}/log?tailLines=few"), error=True, pods=True),
    case("a subresource that is not there", POD, get(f"{P}/nothing"), error=True, pods=True),
    case("below a subresource", POD, get(f"{P}/status/more"), error=True, pods=True),
    case("named node", setup("POST", NODES, named("{ns}-z")), get(f"{NODES}/{{ns}}-z/status")),
]  # fmt: skip

CASES: list[Case] = [*STATUS, *SCALE, *EVICTION, *BINDING, *OTHERS]
