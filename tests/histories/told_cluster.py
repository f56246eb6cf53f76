"""What a cluster's objects go through in a story: nodes, the workload and its pods, the service in front of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from bodies import UNSCHEDULABLE, node_body, pod_body, running, serving
from told_objects import Json, ToldObjects


@dataclass
class ToldCluster(ToldObjects):
    """One workload ``llm`` of the namespace, with its autoscaler, budget and service, on nodes of two pools."""

    _nodes: dict[str, str | None] = field(default_factory=dict)
    _routes: list[tuple[float, int, Json, Json]] = field(default_factory=list)

    # Nodes.

    def node(
        self, name: str, at_s: float = -5, usable_s: float | None = None, gpus: int = 4, pool: str = "on-demand"
    ) -> None:
        """Registered at ``at_s``, Ready a little later, its GPUs allocatable from ``usable_s`` on."""
        ready = at_s < 0
        kind = "spot" if pool == "spot" else "on-demand"
        labels = {"karpenter.sh/nodepool": pool, "karpenter.sh/capacity-type": kind, "nvidia.com/gpu.count": str(gpus)}
        body = node_body(ready, gpus if ready else 0, {"labels": labels})
        self.put(at_s, "Node", name, body, namespace=None)
        if usable_s is not None:
            self.change((at_s + usable_s) / 2, "Node", name, lambda n: n.update(node_body(True, 0, n["metadata"])))
            self.change(usable_s, "Node", name, lambda n: n.update(node_body(True, gpus, n["metadata"])))

    def claim(self, name: str, at_s: float, launched_s: float | None = None) -> None:
        self.put(at_s, "NodeClaim", name, {"status": {"nodeName": name}}, namespace=None)
        if launched_s is not None:
            launched = [{"type": "Launched", "status": "True"}]
            self.change(launched_s, "NodeClaim", name, lambda c: c["status"].update(conditions=launched))

    def taint(self, node: str, at_s: float, key: str = "karpenter.sh/disrupted") -> None:
        taint = {"key": key, "effect": "NoSchedule"}
        self.change(at_s, "Node", node, lambda n: n.setdefault("spec", {}).setdefault("taints", []).append(taint))

    def gpus(self, node: str, at_s: float, allocatable: int) -> None:
        """The node offers so many from now on; what it has stays."""
        allocated = {"nvidia.com/gpu": str(allocatable)}
        self.change(at_s, "Node", node, lambda n: n["status"].update(allocatable=allocated))

    def label_node(self, node: str, key: str, value: str) -> None:
        """It had that label from the start."""
        self._now["Node", node]["metadata"]["labels"][key] = value
        self.change(-4, "Node", node, lambda n: None)

    def heartbeat(self, at_s: float, node: str, ahead_s: float = 0.0) -> None:
        stamp = self.stamp(at_s, ahead_s)
        self.change(at_s, "Node", node, lambda n: n["status"]["conditions"][0].update(lastHeartbeatTime=stamp))

    def node_gone(self, node: str, at_s: float) -> None:
        self.remove(at_s, "Node", node)

    # The workload.

    def deployment(self, replicas: int, at_s: float = -5) -> None:
        owner = [{"uid": "uid-deployment-llm", "controller": True, "kind": "Deployment"}]
        self.put(at_s, "Deployment", "llm", {"spec": {"replicas": replicas}})
        self.put(at_s, "ReplicaSet", "llm-1", {"metadata": {"ownerReferences": owner}, "spec": {"replicas": replicas}})

    def scale(self, at_s: float, replicas: int, writer: str | None = "kube-controller-manager") -> None:
        """With ``writer=None`` as a recorder that keeps no managedFields sees it."""

        def edit(deployment: Json) -> None:
            deployment["spec"].update(replicas=replicas)
            if writer:
                owned = {"f:spec": {"f:replicas": {}}}
                entry = {"manager": writer, "subresource": "scale", "fieldsV1": owned, "time": f"{at_s:09.1f}"}
                deployment["metadata"]["managedFields"] = [entry]

        self.change(at_s, "Deployment", "llm", edit)
        self.change(at_s + 0.1, "ReplicaSet", "llm-1", lambda d: d["spec"].update(replicas=replicas))

    def hpa(
        self, target: str = "2", *, name: str = "llm", least: int = 1, replicas_max: int = 8, at_s: float = -5
    ) -> None:
        metric = {"metric": {"name": "vllm_num_requests_waiting"}, "target": {"averageValue": target}}
        spec = {"metrics": [{"type": "Pods", "pods": metric}], "minReplicas": least, "maxReplicas": replicas_max}
        spec["scaleTargetRef"] = {"kind": "Deployment", "name": "llm"}
        self.put(at_s, "HorizontalPodAutoscaler", name, {"spec": spec})

    def hpa_says(
        self, at_s: float, value: str | None, active: str = "ValidMetricFound", wants: int | None = None
    ) -> None:
        """Its status: what it read, its condition ScalingActive, and the size that it set."""
        read = {"metric": {"name": "vllm_num_requests_waiting"}, "current": {"averageValue": value}}
        condition = {"type": "ScalingActive", "status": str(not active.startswith("Failed")), "reason": active}
        status: Json = {"currentMetrics": [{"type": "Pods", "pods": read}] if value else [], "conditions": [condition]}
        status |= {} if wants is None else {"desiredReplicas": wants}
        self.change(at_s, "HorizontalPodAutoscaler", "llm", lambda h: h.update(status=status))

    def budget(self, desired: int, allowed: int, at_s: float = -5, healthy: int | None = None) -> None:
        status = {
            "desiredHealthy": desired,
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy or desired + allowed,
        }
        if ("PodDisruptionBudget", "llm") in self._now:
            self.change(at_s, "PodDisruptionBudget", "llm", lambda b: b.update(status=status))
            return
        spec = {"maxUnavailable": "25%", "selector": {"matchLabels": {"app": "llm"}}}
        self.put(at_s, "PodDisruptionBudget", "llm", {"spec": spec, "status": status})

    def group(self, name: str, min_count: int, at_s: float = -5) -> None:
        self.put(at_s, "PodGroup", name, {"spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}}})

    def event(self, at_s: float, about: str, reason: str, message: str) -> None:
        body = {"involvedObject": {"kind": "Pod", "name": about}, "reason": reason, "message": message}
        self.put(at_s, "Event", f"{about}.{len(self._events)}", body)

    # Its pods.

    def pod(
        self,
        name: str,
        node: str | None = None,
        at_s: float = -5,
        *,
        refused_s: float | None = None,
        bound_s: float | None = None,
        running_s: float | None = None,
        ready_s: float | None = None,
        app: str = "llm",
        group: str | None = None,
        grace_s: int = 90,
        pre_stop_s: int = 10,
        labels: Json | None = None,
        annotations: Json | None = None,
    ) -> None:
        """A pod of a ReplicaSet. One that was there before second 0 is Ready; a later one goes through its stages."""
        self._nodes[name] = node
        pod = pod_body(app, group, grace_s, pre_stop_s)
        pod["metadata"]["labels"] |= labels or {}
        pod["metadata"]["annotations"] = annotations or {}
        if at_s < 0:
            pod["spec"]["nodeName"] = node
            pod["status"] = serving()
        self.put(at_s, "Pod", name, pod)
        if at_s < 0 and app == "llm":
            self._route(at_s, name, ready=True)
        if refused_s is not None:
            self.change(refused_s, "Pod", name, lambda p: p["status"].update(conditions=[dict(UNSCHEDULABLE)]))
        if node and at_s >= 0:
            scheduled = [{"type": "PodScheduled", "status": "True"}]
            when = bound_s if bound_s is not None else (refused_s or at_s) + 0.1
            self.change(
                when, "Pod", name, lambda p: (p["spec"].update(nodeName=node), p["status"].update(conditions=scheduled))
            )
        if running_s is not None:
            self.change(running_s, "Pod", name, lambda p: p["status"].update(running()))
        if ready_s is not None:
            self.change(ready_s, "Pod", name, lambda p: p["status"].update(serving()))
            if app == "llm":
                self._route(ready_s + 0.1, name, ready=True)

    def unready(self, at_s: float, pod: str) -> None:
        self.change(at_s, "Pod", pod, lambda p: p["status"].update(running()))
        self._route(at_s, pod, ready=False)

    def evict(self, at_s: float, pod: str, reason: str | None = "EvictionByEvictionAPI") -> None:
        """The pod is asked to go; with ``reason=None`` by a plain DELETE."""

        def edit(p: Json) -> None:
            p["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            p["metadata"]["deletionGracePeriodSeconds"] = p["spec"]["terminationGracePeriodSeconds"]
            if reason:
                target = {"type": "DisruptionTarget", "status": "True", "reason": reason}
                p["status"].setdefault("conditions", []).append(target)

        self.change(at_s, "Pod", pod, edit)
        if any(ref["name"] == pod for _, _, ref, _ in self._routes):
            self._route(at_s + 0.05, pod, ready=False, terminating=True)

    def end(self, at_s: float, pod: str, exit_code: int = 0) -> None:
        """Its container ends, and the object goes."""
        state = {"terminated": {"exitCode": exit_code}}
        phase = "Failed" if exit_code else "Succeeded"

        def edit(p: Json) -> None:
            p["status"].update(phase=phase, containerStatuses=[{"name": "vllm", "state": state, "restartCount": 0}])

        self.change(at_s, "Pod", pod, edit)
        self.remove(at_s + 1, "Pod", pod)

    def crash(self, at_s: float, pod: str, exit_code: int = 1) -> None:
        """Its container ends and is started again."""
        last = {"terminated": {"exitCode": exit_code}}
        status = [{"name": "vllm", "state": {"running": {}}, "lastState": last, "restartCount": 1}]
        self.change(at_s, "Pod", pod, lambda p: p["status"].update(running(), containerStatuses=status))

    def evicted_by_its_kubelet(self, at_s: float, pod: str) -> None:
        """As kubelet 1.37 tells of a hard eviction: once, when the container has ended. Nobody asked the pod to go."""
        state = {"terminated": {"exitCode": 137, "reason": "Error"}}
        target = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
        status: Json = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory. "}
        status |= {"conditions": [target], "containerStatuses": [{"name": "vllm", "state": state, "restartCount": 0}]}
        self.change(at_s, "Pod", pod, lambda p: p.update(status=status))

    def devices(self, at_s: float, pod: str, *ids: str) -> None:
        """Its kubelet says which devices it has."""
        resources = [{"resourceID": one, "health": "Healthy"} for one in ids]

        def edit(p: Json) -> None:
            for status in p["status"]["containerStatuses"]:
                status["allocatedResourcesStatus"] = [{"name": "nvidia.com/gpu", "resources": resources}]

        self.change(at_s, "Pod", pod, edit)

    def rejected(self, at_s: float, pod: str) -> None:
        """Its kubelet finds no device for it."""
        message = "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu"
        status = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": message}
        self.change(at_s, "Pod", pod, lambda p: p.update(status=status))

    def _route(self, at_s: float, pod: str, *, ready: bool, terminating: bool = False) -> None:
        conditions = {"ready": ready, "serving": ready or terminating, "terminating": terminating}
        uid = self._now["Pod", pod]["metadata"]["uid"]
        self._routes.append((at_s, len(self._routes), {"kind": "Pod", "name": pod, "uid": uid}, conditions))

    def _slice_events(self) -> None:
        """One EndpointSlice of the service, written anew at each change in the order of time."""
        endpoints: dict[str, Json] = {}
        for at_s, _, ref, conditions in sorted(self._routes, key=lambda route: route[:2]):
            endpoints[ref["name"]] = {"targetRef": ref, "conditions": conditions}
            body = {
                "metadata": {"labels": {"kubernetes.io/service-name": "llm"}},
                "endpoints": [dict(e) for e in endpoints.values()],
            }
            if ("EndpointSlice", "llm-x") in self._now:
                self.change(at_s, "EndpointSlice", "llm-x", lambda s, new=body: s.update(endpoints=new["endpoints"]))
            else:
                self.put(at_s, "EndpointSlice", "llm-x", body)
        self._routes.clear()
