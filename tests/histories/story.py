"""Tells a run in scenario seconds and yields the history that the harness would have recorded.

Objects look as the API serves them; what happens before second 0 is LISTED, as a recorder that starts before the load
sees it. Nothing here knows a check.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
from bodies import UNSCHEDULABLE, node_body, pod_body, running, serving

from harness.history.phases import compute_phases, phase_of
from harness.history.reader import History, empty_samples
from harness.history.requests import typed_requests
from harness.history.run_info import RunInfo
from harness.history.tables import (
    REQUEST_COLUMNS,
    REQUESTS_FILE,
    SAMPLE_COLUMNS,
    SERVER_TIME_MARK,
    VERSION_MARK,
    WALL_CLOCK_MARK,
    FaultEvent,
    FaultStage,
    LedgerEntry,
    Mark,
    ObjectEvent,
    ObjectEventType,
    Outcome,
)
from harness.history.writer import HistoryWriter

Json = dict[str, Any]
NAMESPACE = "inference"
LOAD_START_NS = 1_000_000_000
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Story:
    """One run. Every method takes the scenario second since the load began at which the recorder saw it."""

    time_scale: float = 10.0
    length_s: float = 600.0
    lag_limit_ms: float = 50.0
    ended: str = "completed"
    _events: list[tuple[float, int, str, ObjectEventType, Json, float | None, str | None]] = field(default_factory=list)
    _now: dict[tuple[str, str], Json] = field(default_factory=dict)
    _gone: Counter[tuple[str, str]] = field(default_factory=Counter)
    _nodes: dict[str, str | None] = field(default_factory=dict)
    _routes: list[tuple[float, int, Json, Json]] = field(default_factory=list)
    _requests: list[Json] = field(default_factory=list)
    _samples: list[tuple[int, str, str, str, float]] = field(default_factory=list)
    _faults: list[FaultEvent] = field(default_factory=list)
    _marks: list[Mark] = field(default_factory=list)
    _ledger: list[LedgerEntry] | None = None
    info: Json = field(default_factory=dict)
    """Overrides of RunInfo."""
    api_ahead_s: float = 0.0
    """Clock seconds by which the API server's clock is ahead of the harness's."""
    known: bool = True
    """Whether the recorder noted its time of day and the server's version."""

    def ns(self, at_s: float) -> int:
        return LOAD_START_NS + round(at_s / self.time_scale * 1e9)

    def stamp(self, at_s: float, ahead_s: float = 0.0) -> str:
        """What a clock shows in the API's whole seconds, so many clock seconds ahead of the harness's."""
        return (EPOCH + timedelta(seconds=self.ns(at_s) // 10**9 + ahead_s)).strftime("%Y-%m-%dT%H:%M:%SZ")

    # Objects.

    def put(self, at_s: float, kind: str, name: str, obj: Json, namespace: str | None = NAMESPACE) -> None:
        """What comes after one of its name was removed is another object."""
        known = copy.deepcopy(obj)
        meta = known.setdefault("metadata", {})
        again = f"-{before + 1}" if (before := self._gone[kind, name]) else ""
        meta |= {"name": name, "uid": f"uid-{kind.lower()}-{name}{again}"}
        meta |= {"namespace": namespace} if namespace else {}
        if at_s >= 0:
            meta["creationTimestamp"] = self.stamp(at_s, self.api_ahead_s)
        self._now[kind, name] = known
        self._say(at_s, kind, ObjectEventType.LISTED if at_s < 0 else ObjectEventType.ADDED, known)

    def change(self, at_s: float, kind: str, name: str, edit: Callable[[Json], object]) -> None:
        edit(self._now[kind, name])
        self._say(at_s, kind, ObjectEventType.MODIFIED, self._now[kind, name])

    def remove(self, at_s: float, kind: str, name: str) -> None:
        self._say(at_s, kind, ObjectEventType.DELETED, self._now.pop((kind, name)))
        self._gone[kind, name] += 1

    def unseen(self, kind: str, name: str, edit: Callable[[Json], object] | None = None) -> None:
        """Changes it, or without ``edit`` removes it, while nobody watches; a gap's list tells of it."""
        if edit is None:
            self._now.pop((kind, name))
        else:
            edit(self._now[kind, name])

    def gap(self, since_s: float, until_s: float, kind: str, reason: str = "410 Gone") -> None:
        """The recorder was blind; what is there afterwards is listed again."""
        self._events.append((until_s, len(self._events), kind, ObjectEventType.GAP, {}, since_s, reason))
        for (known, _), obj in list(self._now.items()):
            if known == kind:
                self._say(until_s, kind, ObjectEventType.LISTED, obj)

    def _say(self, at_s: float, kind: str, what: ObjectEventType, obj: Json) -> None:
        self._events.append((at_s, len(self._events), kind, what, copy.deepcopy(obj), None, None))

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

    def waiting(self, at_s: float, **pods: float) -> None:
        for pod, value in pods.items():
            self.sample(at_s, "custom.metrics", "vllm_num_requests_waiting", value, pod=pod.replace("_", "-"))

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

    # Requests, samples, faults, marks.

    def request(
        self,
        at_s: float,
        pod: str | None = None,
        outcome: Outcome = Outcome.OK,
        *,
        lasts_s: float = 5.0,
        ttft_ms: float = 200.0,
        lag_ms: float = 1.0,
        output_tokens: int = 20,
        node: str | None = None,
        status: int | None = 200,
        reason: str | None = None,
        **cells: Any,
    ) -> int:
        """Planned for ``at_s``, first token ``ttft_ms`` after that, end ``lasts_s`` scenario seconds after that."""
        intended = self.ns(at_s)
        sent = intended + round(lag_ms * 1e6)
        end = self.ns(at_s + lasts_s)
        token = min(intended + round(ttft_ms * 1e6), end)
        row: Json = dict.fromkeys(REQUEST_COLUMNS)
        row |= {"request_id": len(self._requests), "attempt": 1, "intended_ns": intended, "chunks": output_tokens}
        row |= {"planned_prompt_tokens": 100, "planned_output_tokens": output_tokens, "done": False, "reused": False}
        row |= {"outcome": str(outcome), "reason": reason, "tenant": "t", "session": ""}
        if outcome is not Outcome.NOT_SENT:
            row |= {"sent_ns": sent, "connected_ns": sent, "end_ns": end, "pod": pod}
            row["node"] = node or self._nodes.get(pod or "")
        if pod is not None and outcome is not Outcome.NOT_SENT:
            row |= {"headers_ns": token, "first_chunk_ns": token, "first_token_ns": token, "last_token_ns": end}
            row |= {"status": status, "gap_max_ns": (end - token) // max(1, output_tokens - 1)}
        if outcome is Outcome.OK:
            row |= {"output_tokens": output_tokens, "prompt_tokens": 100, "finish_reason": "length", "done": True}
        self._requests.append(row | cells)
        return int(row["request_id"])

    def served(
        self, request_id: int, pod: str, tokens: int = 20, finish: str | None = "length", *, closed: bool = True
    ) -> None:
        """A line of the fakes' own book; a story without any has no such book."""
        self._ledger = self._ledger or []
        sent = {"sent_tokens": tokens, "sent_events": tokens, "finish": finish} if closed else {}
        self._ledger.append(LedgerEntry(2 * len(self._ledger), pod, f"7-{request_id}", 100, closed, **sent))

    def traffic(self, from_s: float, until_s: float, every_s: float, pods: tuple[str, ...], **cells: Any) -> None:
        at_s, turn = from_s, 0
        while at_s < until_s:
            self.request(at_s, pods[turn % len(pods)], **cells)
            at_s, turn = at_s + every_s, turn + 1

    def sample(self, at_s: float, source: str, name: str, value: float, **labels: str) -> None:
        text = json.dumps(labels, sort_keys=True, separators=(",", ":"))
        self._samples.append((self.ns(at_s), source, name, text, value))

    def stall(self, ends_s: float, stall_s: float) -> None:
        self.sample(ends_s, "machine", "stall_s", stall_s)

    def server_time(self, at_s: float, ahead_s: float = 0.0, took_s: float = 0.001) -> None:
        """The API server was asked for its time of day, and answered at ``at_s``; the rest in clock seconds."""
        said = (EPOCH + timedelta(seconds=self.ns(at_s) / 1e9 + ahead_s)).replace(microsecond=0)
        self.mark(at_s, SERVER_TIME_MARK, said.isoformat(), f"{took_s:.3f}")

    def mark(self, at_s: float, name: str, value: str = "", detail: str = "") -> None:
        self._marks.append(Mark(len(self._marks), self.ns(at_s), name, value, detail))

    def fault(self, at_s: float, stage: FaultStage, *targets: str, **cells: Any) -> None:
        known = {"fault_id": "spot_interruption-1", "fault": "spot_interruption", "fidelity": "emulated"} | cells
        event = FaultEvent(len(self._faults), self.ns(at_s), stage=stage, targets=targets, **known)
        self._faults.append(event)

    def valid(self) -> Story:
        """Everything that makes a run valid, so that only the story's own trouble shows."""
        self.mark(0, "load_start")
        self.mark(0, "steady_state_before", "met")
        if not self._faults:
            for at_s, stage in ((-1, "planned"), (320, "injected"), (321, "observed"), (440, "ended"), (590, "healed")):
                self.fault(at_s, FaultStage(stage), "spot-1")
        if not self._requests:
            self.traffic(10, 20, 1, ("llm-a",))
        if not self._events:
            self.node("on-demand-1")
        if not any(what is ObjectEventType.ADDED for _, _, _, what, *_ in self._events):
            self.put(max(0.0, *(at_s for at_s, *_ in self._events)), "Event", "of-no-interest", {})
        return self

    # The history.

    def build(self) -> History:
        """Resource versions count on in the order of time, as one API server would give them."""
        self._slice_events()
        ordered = sorted(self._events, key=lambda event: (event[0], event[1]))
        objects: list[ObjectEvent] = []
        for index, (at_s, _, kind, what, obj, since_s, reason) in enumerate(ordered):
            if what is not ObjectEventType.LISTED and obj:
                obj["metadata"]["resourceVersion"] = str(1000 + index)
            since = None if since_s is None else self.ns(since_s)
            objects.append(ObjectEvent(index, self.ns(at_s), kind, what, obj, since, reason))
        notes = ((WALL_CLOCK_MARK, EPOCH.isoformat()), (VERSION_MARK, "v1.37.2")) if self.known else ()
        noted = [Mark(len(self._marks) + i, 0, *note) for i, note in enumerate(notes)]
        phases = compute_phases(self.ns(0), self.ns(self.length_s), 60.0, self.time_scale, self._faults)
        requests = pd.DataFrame(self._requests, columns=list(REQUEST_COLUMNS), dtype=object)
        requests["phase"] = [phase_of(phases, t) for t in requests["intended_ns"]]
        samples = pd.DataFrame(self._samples, columns=list(SAMPLE_COLUMNS)) if self._samples else empty_samples()
        run = RunInfo(
            seed=7,
            time_scale=self.time_scale,
            experiment="story.yaml",
            title="A spot interruption during a burst loses no stream",
            target="embedded",
            started_utc="2026-01-01T00:00:00Z",
            command="gpu-harness run story.yaml --seed 7",
            versions={"gpu-harness": "0.1.0"},
            commit="0123456789abcdef",
            load_start_ns=self.ns(0),
            load_end_ns=self.ns(self.length_s),
            warm_up_s=60.0,
            phases=phases,
            planned=len(self._requests),
            ended=self.ended,
            undo_planned=1,
            fidelity={"spot_interruption": "emulated"},
            real=("Locust", "Chaos Toolkit", "HTTP and SSE"),
            emulated=("control plane", "nodes", "cloud", "GPUs", "vLLM"),
            workload={"namespace": NAMESPACE, "selector": "app=llm", "service": "llm"},
            load_lag_limit_ms=self.lag_limit_ms,
        )
        return History(
            typed_requests(requests),
            tuple(objects),
            samples.astype(SAMPLE_COLUMNS),
            tuple(self._faults),
            (*self._marks, *noted),
            replace(run, **self.info),
            None,
            None if self._ledger is None else tuple(self._ledger),
        )


def write_run(history: History, run_dir: Path) -> Path:
    """The history as the files of a run's folder, by the harness's own writer."""
    with HistoryWriter(run_dir / "history") as writer:
        for event in history.objects:
            writer.objects.write(
                event.t_ns, event.kind, event.type, event.object, since_ns=event.since_ns, reason=event.reason
            )
        for t_ns, source, name, labels, value in history.samples.itertuples(index=False):
            writer.samples.add(t_ns, source, name, value, json.loads(labels))
        for fault in history.faults:
            writer.fault(fault)
        for mark in history.marks:
            writer.mark(mark.t_ns, mark.name, mark.value, mark.detail)
        history.requests.to_parquet(run_dir / "history" / REQUESTS_FILE, index=False)
        history.run.write(writer.dir)
    return run_dir
