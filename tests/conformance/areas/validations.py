"""422 with causes, kind by kind, and what a kind's defaults make of little."""

from __future__ import annotations

from typing import Any

from case import Case, Explained, case, get, patch, post, put, setup
from wire_bodies import (
    ACCOUNTS,
    CONFIG_MAPS,
    CONTAINER,
    DEPLOYMENTS,
    EVENTS,
    HPAS,
    LABELS,
    LEASES,
    NAMESPACES,
    NODES,
    OLD_HPAS,
    PDBS,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    SECRETS,
    SELECTOR,
    SERVICES,
    SLICES,
    TEMPLATE,
    Json,
    config_map,
    deployment,
    hpa,
    named,
    pdb,
    pod,
    pod_group,
    service,
)  # fmt: skip


def refused(kind: str, path: str, what: str, body: Json, explained: tuple[Explained, ...] = ()) -> Case:
    return case(f"{kind}: {what}", post(path, body), error=True, pods=path == PODS, explained=explained)


def made(kind: str, path: str, what: str, body: Json) -> Case:
    return case(f"{kind}: {what}", post(path, body), pods=path == PODS)


def container(**fields: Any) -> Json:
    return pod("a", containers=[CONTAINER | fields])


def meta(**fields: Any) -> Json:
    return {"metadata": {"name": "a", **fields}}


def metric(kind: str, **source: Any) -> Json:
    return {"type": kind, kind[:1].lower() + kind[1:]: source}


METADATA = [
    refused("metadata", CONFIG_MAPS, "a name in capitals", named("Big")),
    refused("metadata", CONFIG_MAPS, "a name with an underscore", named("a_b")),
    refused("metadata", CONFIG_MAPS, "a name that is too long", named("a" * 254)),
    refused("metadata", CONFIG_MAPS, "a name with a slash", named("a/b")),
    refused("metadata", CONFIG_MAPS, "a name that is a dot", named(".")),
    refused("metadata", CONFIG_MAPS, "a label's key", meta(labels={"-x": "y"})),
    refused("metadata", CONFIG_MAPS, "a label's prefix", meta(labels={"UP.com/x": "y"})),
    refused("metadata", CONFIG_MAPS, "a label's value", meta(labels={"x": "not ok"})),
    refused("metadata", CONFIG_MAPS, "a label's value that is too long", meta(labels={"x": "y" * 64})),
    refused("metadata", CONFIG_MAPS, "an annotation's key", meta(annotations={"a b": "c"})),
    refused("metadata", CONFIG_MAPS, "a finalizer that is not qualified", meta(finalizers=["hold"])),
    refused("metadata", CONFIG_MAPS, "an owner without a uid", meta(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p"}])),
    refused("metadata", CONFIG_MAPS, "an owner without a kind", meta(ownerReferences=[{"apiVersion": "v1", "name": "p", "uid": "u"}])),
    refused("metadata", CONFIG_MAPS, "annotations that are too large", meta(annotations={"x": "y" * 270000})),
]  # fmt: skip

POD = [
    refused("Pod", PODS, "no spec", named("a")),
    refused("Pod", PODS, "no containers", pod("a", containers=[])),
    refused("Pod", PODS, "a container without a name", pod("a", containers=[{"image": "x"}])),
    refused("Pod", PODS, "a container without an image", pod("a", containers=[{"name": "x"}])),
    refused("Pod", PODS, "two containers of one name", pod("a", containers=[CONTAINER, CONTAINER])),
    refused("Pod", PODS, "a container's name", pod("a", containers=[{"name": "Big_One", "image": "x"}])),
    refused("Pod", PODS, "an unknown restart policy", pod("a", restartPolicy="Sometimes")),
    refused("Pod", PODS, "an unknown dns policy", pod("a", dnsPolicy="Mine")),
    refused("Pod", PODS, "a port out of range", container(ports=[{"containerPort": 70000}])),
    refused("Pod", PODS, "a port without a number", container(ports=[{"name": "http"}])),
    refused("Pod", PODS, "two ports of one name", container(ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}])),
    refused("Pod", PODS, "a port's name", container(ports=[{"containerPort": 1, "name": "Far_too_long_a_name"}])),
    refused("Pod", PODS, "an unknown protocol", container(ports=[{"containerPort": 1, "protocol": "ICMP"}])),
    refused("Pod", PODS, "an unknown pull policy", container(imagePullPolicy="Perhaps")),
    refused("Pod", PODS, "a request above its limit", container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}})),
    refused("Pod", PODS, "a negative amount", container(resources={"limits": {"cpu": "-1"}})),
    refused("Pod", PODS, "a GPU that is asked for and not limited", container(resources={"requests": {"nvidia.com/gpu": "1"}})),
    refused("Pod", PODS, "more GPUs limited than asked for", container(resources={"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "1"}})),
    refused("Pod", PODS, "half a GPU", container(resources={"limits": {"nvidia.com/gpu": "500m"}})),
    refused("Pod", PODS, "an unknown resource", container(resources={"limits": {"gpus": "1"}})),
    refused("Pod", PODS, "env without a name", container(env=[{"value": "x"}])),
    refused("Pod", PODS, "env with a value and a source", container(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])),
    refused("Pod", PODS, "a probe without a handler", container(readinessProbe={"periodSeconds": 5})),
    refused("Pod", PODS, "a probe with two handlers", container(readinessProbe={"httpGet": {"port": 1}, "tcpSocket": {"port": 1}})),
    refused("Pod", PODS, "a probe that waits below zero", container(readinessProbe={"httpGet": {"port": 80}, "periodSeconds": -1})),
    refused("Pod", PODS, "a liveness probe that succeeds twice", container(livenessProbe={"httpGet": {"port": 80}, "successThreshold": 2})),
    refused("Pod", PODS, "a hook without a handler", container(lifecycle={"preStop": {}})),
    refused("Pod", PODS, "a hook that sleeps below zero", container(lifecycle={"preStop": {"sleep": {"seconds": -1}}})),
    refused("Pod", PODS, "a mount of no volume", container(volumeMounts=[{"name": "none", "mountPath": "/x"}])),
    refused("Pod", PODS, "two mounts at one path", pod("a", volumes=[{"name": "v"}], containers=[CONTAINER | {"volumeMounts": [
        {"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x"}]}])),
    refused("Pod", PODS, "two volumes of one name", pod("a", volumes=[{"name": "v"}, {"name": "v"}])),
    refused("Pod", PODS, "a volume without a name", pod("a", volumes=[{"emptyDir": {}}])),
    refused("Pod", PODS, "a volume of two sources", pod("a", volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}])),
    refused("Pod", PODS, "a toleration's operator", pod("a", tolerations=[{"key": "a", "operator": "Near"}])),
    refused("Pod", PODS, "a toleration of everything with a value", pod("a", tolerations=[{"operator": "Exists", "value": "x"}])),
    refused("Pod", PODS, "a toleration's effect", pod("a", tolerations=[{"key": "a", "operator": "Exists", "effect": "Never"}])),
    refused("Pod", PODS, "seconds of a toleration that does not evict", pod("a", tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3}])),
    refused("Pod", PODS, "a node selector's value", pod("a", nodeSelector={"x": "not ok"})),
    refused("Pod", PODS, "a deadline below one", pod("a", activeDeadlineSeconds=0)),
    refused("Pod", PODS, "an account that is not there", pod("a", serviceAccountName="none")),
    refused("Pod", PODS, "a priority class that is not there", pod("a", priorityClassName="none")),
    refused("Pod", PODS, "a priority that nobody resolved", pod("a", priority=7)),
    refused("Pod", PODS, "two gates of one name", pod("a", schedulingGates=[{"name": "x.y/z"}, {"name": "x.y/z"}])),
    refused("Pod", PODS, "an affinity's operator", pod("a", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}]}}})),
    refused("Pod", PODS, "an affinity without terms", pod("a", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": []}}})),
    refused("Pod", PODS, "a spread without a topology", pod("a", topologySpreadConstraints=[{"maxSkew": 0, "whenUnsatisfiable": "Perhaps"}])),
    refused("Pod", PODS, "an init container of the same name", pod("a", initContainers=[CONTAINER])),
    made("Pod", PODS, "all that is defaulted", pod("a", terminationGracePeriodSeconds=-3, volumes=[{"name": "v"}, {"name": "s", "secret": {"secretName": "x"}},
        {"name": "c", "configMap": {"name": "x"}}, {"name": "h", "hostPath": {"path": "/x"}}], initContainers=[{"name": "i", "image": "i", "restartPolicy": "Always"}],
        containers=[CONTAINER | {"ports": [{"containerPort": 80}], "readinessProbe": {"httpGet": {"port": "http"}}, "livenessProbe": {"exec": {"command": ["x"]}},
        "startupProbe": {"tcpSocket": {"port": 1}}, "lifecycle": {"preStop": {"httpGet": {"port": 1}}}, "env": [{"name": "A", "valueFrom": {"fieldRef": {
        "fieldPath": "metadata.name"}}}], "resources": {"limits": {"nvidia.com/gpu": 1}}}])),
    made("Pod", PODS, "images and how they are pulled", pod("a", containers=[{"name": n, "image": i} for n, i in (
        ("a", "x"), ("b", "x:latest"), ("c", "x:1"), ("d", "h:5000/x"), ("e", "x@sha256:" + "0" * 64))])),
    made("Pod", PODS, "guaranteed", container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})),
    made("Pod", PODS, "burstable", container(resources={"requests": {"cpu": "1"}})),
    made("Pod", PODS, "a host port by the host's network", pod("a", hostNetwork=True, containers=[CONTAINER | {"ports": [{"containerPort": 80}]}])),
    made("Pod", PODS, "tolerations of its own", pod("a", tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}])),
    made("Pod", PODS, "no token", pod("a", automountServiceAccountToken=False)),
    made("Pod", PODS, "a name that is no host name", pod("a.b")),
    case("Pod: a priority", setup("POST", PRIORITY_CLASSES, {"metadata": {"name": "{ns}-q"}, "value": 9, "preemptionPolicy": "Never"}),
         post(PODS, pod("a", priorityClassName="{ns}-q")), pods=True),
    case("Pod: a toleration added", setup("POST", PODS, pod()), patch(f"{PODS}/a", [{"op": "add", "path": "/spec/tolerations/-", "value": {
         "key": "x", "operator": "Exists"}}], "application/json-patch+json"), pods=True),
    case("Pod: tolerations taken away", setup("POST", PODS, pod()), patch(f"{PODS}/a", {"spec": {"tolerations": None}}), pods=True),
]  # fmt: skip

WORKLOADS = [
    refused("Deployment", DEPLOYMENTS, "no spec", named("a")),
    refused("Deployment", DEPLOYMENTS, "no selector", named("a", spec={"template": TEMPLATE})),
    refused("Deployment", DEPLOYMENTS, "an empty selector", deployment("a", selector={})),
    refused("Deployment", DEPLOYMENTS, "a selector that its pods do not have", deployment("a", selector={"matchLabels": {"app": "b"}})),
    refused("Deployment", DEPLOYMENTS, "a selector's operator", deployment("a", selector={"matchLabels": LABELS, "matchExpressions": [{"key": "a", "operator": "Like"}]})),
    refused("Deployment", DEPLOYMENTS, "a selector without its values", deployment("a", selector={"matchLabels": LABELS, "matchExpressions": [{"key": "app", "operator": "In"}]})),
    refused("Deployment", DEPLOYMENTS, "replicas below zero", deployment("a", replicas=-1)),
    refused("Deployment", DEPLOYMENTS, "pods that end", deployment("a", template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}})),
    refused("Deployment", DEPLOYMENTS, "an unknown strategy", deployment("a", strategy={"type": "Slowly"})),
    refused("Deployment", DEPLOYMENTS, "recreate with a rolling update", deployment("a", strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}})),
    refused("Deployment", DEPLOYMENTS, "neither surge nor unavailable", deployment("a", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}})),
    refused("Deployment", DEPLOYMENTS, "a surge that is no percentage", deployment("a", strategy={"rollingUpdate": {"maxSurge": "much"}})),
    refused("Deployment", DEPLOYMENTS, "more unavailable than there are", deployment("a", strategy={"rollingUpdate": {"maxUnavailable": "101%"}})),
    refused("Deployment", DEPLOYMENTS, "a deadline within minReadySeconds", deployment("a", minReadySeconds=10, progressDeadlineSeconds=10)),
    refused("Deployment", DEPLOYMENTS, "a template without containers", deployment("a", template={"metadata": {"labels": LABELS}})),
    refused("Deployment", DEPLOYMENTS, "minReadySeconds below zero", deployment("a", minReadySeconds=-1)),
    made("Deployment", DEPLOYMENTS, "recreate", deployment("a", strategy={"type": "Recreate"})),
    made("Deployment", DEPLOYMENTS, "half a rolling update", deployment("a", strategy={"rollingUpdate": {"maxSurge": 2}})),
    refused("ReplicaSet", REPLICA_SETS, "no selector", named("a", spec={"template": TEMPLATE})),
    refused("ReplicaSet", REPLICA_SETS, "an empty selector", deployment("a", selector={})),
    refused("ReplicaSet", REPLICA_SETS, "replicas below zero", deployment("a", replicas=-2)),
    refused("ReplicaSet", REPLICA_SETS, "no template", named("a", spec={"selector": SELECTOR})),
    case("ReplicaSet: its selector changes", setup("POST", REPLICA_SETS, deployment()), patch(f"{REPLICA_SETS}/a", {"spec": {"selector": {
         "matchLabels": {"app": "b"}}, "template": {"metadata": {"labels": {"app": "b"}}}}}), error=True),
]  # fmt: skip

AUTOSCALERS = [
    refused("HorizontalPodAutoscaler", HPAS, "no spec", named("a")),
    refused("HorizontalPodAutoscaler", HPAS, "no maximum", named("a", spec={"scaleTargetRef": {"kind": "Deployment", "name": "a"}})),
    refused("HorizontalPodAutoscaler", HPAS, "a minimum above the maximum", hpa("a", minReplicas=9)),
    refused("HorizontalPodAutoscaler", HPAS, "a minimum of zero", hpa("a", minReplicas=0)),
    refused("HorizontalPodAutoscaler", HPAS, "a minimum below zero", hpa("a", minReplicas=-1)),
    refused("HorizontalPodAutoscaler", HPAS, "a target without a name", hpa("a", scaleTargetRef={"kind": "Deployment"})),
    refused("HorizontalPodAutoscaler", HPAS, "an unknown metric", hpa("a", metrics=[{"type": "Feeling"}])),
    refused("HorizontalPodAutoscaler", HPAS, "a metric without a source", hpa("a", metrics=[{"type": "Pods"}])),
    refused("HorizontalPodAutoscaler", HPAS, "a metric without a target", hpa("a", metrics=[metric("Pods", metric={"name": "q"}, target={})])),
    refused("HorizontalPodAutoscaler", HPAS, "a metric without a name", hpa("a", metrics=[metric("Pods", metric={"name": ""}, target={"type": "AverageValue", "averageValue": "1"})])),
    refused("HorizontalPodAutoscaler", HPAS, "a resource without a target", hpa("a", metrics=[metric("Resource", name="cpu", target={"type": "Utilization"})])),
    refused("HorizontalPodAutoscaler", HPAS, "a policy's type", hpa("a", behavior={"scaleUp": {"policies": [{"type": "Half", "value": 1, "periodSeconds": 1}]}})),
    refused("HorizontalPodAutoscaler", HPAS, "a policy's period", hpa("a", behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 9999}]}})),
    refused("HorizontalPodAutoscaler", HPAS, "a policy's value", hpa("a", behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 5}]}})),
    refused("HorizontalPodAutoscaler", HPAS, "a window that is too long", hpa("a", behavior={"scaleDown": {"stabilizationWindowSeconds": 9999}})),
    refused("HorizontalPodAutoscaler", HPAS, "an unknown selection", hpa("a", behavior={"scaleDown": {"selectPolicy": "Any"}})),
    made("HorizontalPodAutoscaler", HPAS, "by pods, objects and the outside", hpa("a", metrics=[
        metric("Pods", metric={"name": "q"}, target={"type": "AverageValue", "averageValue": "1500m"}),
        metric("External", metric={"name": "e", "selector": SELECTOR}, target={"type": "Value", "value": "3"}),
        metric("Object", metric={"name": "o"}, describedObject={"kind": "Service", "name": "s", "apiVersion": "v1"}, target={"type": "Value", "value": "4"}),
        metric("Resource", name="memory", target={"type": "AverageValue", "averageValue": "1Gi"})])),
    made("HorizontalPodAutoscaler", HPAS, "behaviour that is half said", hpa("a", behavior={"scaleDown": {"stabilizationWindowSeconds": 60}})),
    case("HorizontalPodAutoscaler: v1 of a v2", setup("POST", HPAS, hpa("a", metrics=[
        metric("Pods", metric={"name": "q"}, target={"type": "AverageValue", "averageValue": "2"}),
        metric("Resource", name="cpu", target={"type": "Utilization", "averageUtilization": 60})])), get(f"{OLD_HPAS}/a")),
    case("HorizontalPodAutoscaler: v2 of a v1", setup("POST", OLD_HPAS, hpa("a", targetCPUUtilizationPercentage=70)), get(f"{HPAS}/a"),
         patch(f"{OLD_HPAS}/a", {"spec": {"maxReplicas": 5}}), get(f"{HPAS}/a")),
]  # fmt: skip

OTHERS = [
    refused("PodDisruptionBudget", PDBS, "both bounds", pdb("a", selector=SELECTOR, minAvailable=1, maxUnavailable=1)),
    refused("PodDisruptionBudget", PDBS, "below zero", pdb("a", selector=SELECTOR, minAvailable=-1)),
    refused("PodDisruptionBudget", PDBS, "no percentage", pdb("a", selector=SELECTOR, maxUnavailable="many")),
    refused("PodDisruptionBudget", PDBS, "more than all", pdb("a", selector=SELECTOR, minAvailable="101%")),
    refused("PodDisruptionBudget", PDBS, "an unknown policy", pdb("a", selector=SELECTOR, minAvailable=1, unhealthyPodEvictionPolicy="Maybe")),
    refused("PodDisruptionBudget", PDBS, "a selector's operator", pdb("a", selector={"matchExpressions": [{"key": "a", "operator": "Like"}]}, minAvailable=1)),
    made("PodDisruptionBudget", PDBS, "of nothing", named("a", spec={})),
    refused("Service", SERVICES, "no ports", named("a", spec={"selector": LABELS})),
    made("Service", SERVICES, "a name that begins with a digit", service("1a")),
    refused("Service", SERVICES, "two ports without names", service("a", ports=[{"port": 80}, {"port": 81}])),
    refused("Service", SERVICES, "two ports of one name", service("a", ports=[{"port": 80, "name": "x"}, {"port": 81, "name": "x"}])),
    refused("Service", SERVICES, "two ports of one number", service("a", ports=[{"port": 80, "name": "x"}, {"port": 80, "name": "y"}])),
    refused("Service", SERVICES, "a port out of range", service("a", ports=[{"port": 0}])),
    refused("Service", SERVICES, "an unknown type", service("a", type="Magic")),
    refused("Service", SERVICES, "an unknown affinity", service("a", sessionAffinity="Some")),
    refused("Service", SERVICES, "an unknown protocol", service("a", ports=[{"port": 80, "protocol": "ICMP"}])),
    refused("Service", SERVICES, "an external name without one", named("a", spec={"type": "ExternalName"})),
    made("Service", SERVICES, "headless", service("a", clusterIP="None")),
    made("Service", SERVICES, "an external name", named("a", spec={"type": "ExternalName", "externalName": "x.example.com"})),
    made("Service", SERVICES, "with affinity", service("a", sessionAffinity="ClientIP")),
    made("Service", SERVICES, "on the nodes' ports", service("a", type="NodePort")),
    made("Service", SERVICES, "with target ports", service("a", ports=[{"port": 80, "targetPort": "http", "name": "a"}, {"port": 81, "targetPort": 8081, "name": "b"}])),
    refused("ConfigMap", CONFIG_MAPS, "a key", {**named("a"), "data": {"a/b": "x"}}),
    refused("ConfigMap", CONFIG_MAPS, "one key in both", {**named("a"), "data": {"a": "x"}, "binaryData": {"a": "eA=="}}),
    refused("ConfigMap", CONFIG_MAPS, "too large", config_map("a", k="x" * 1048577)),
    refused("Secret", SECRETS, "a key", {**named("a"), "stringData": {"a/b": "x"}}),
    refused("Secret", SECRETS, "a type's keys", {**named("a"), "type": "kubernetes.io/basic-auth"}),
    case("Secret: its type changes", setup("POST", SECRETS, named("a")), patch(f"{SECRETS}/a", {"type": "other"}), error=True),
    made("ServiceAccount", ACCOUNTS, "with secrets", {**named("a"), "secrets": [{"name": "s"}], "automountServiceAccountToken": False}),
    refused("Namespace", NAMESPACES, "a name with a dot", named("a.b")),
    refused("Namespace", NAMESPACES, "a name that is too long", named("a" * 64)),
    made("Namespace", NAMESPACES, "with labels", {"metadata": {"name": "{ns}-l", "labels": {"x": "y"}}}),
    refused("Node", NODES, "a taint without a key", {"metadata": {"name": "{ns}-n"}, "spec": {"taints": [{"effect": "NoSchedule"}]}}),
    refused("Node", NODES, "a taint's effect", {"metadata": {"name": "{ns}-n"}, "spec": {"taints": [{"key": "a", "effect": "Never"}]}}),
    refused("Node", NODES, "two taints alike", {"metadata": {"name": "{ns}-n"}, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}}),
    case("Node: its provider changes", setup("POST", NODES, {"metadata": {"name": "{ns}-p"}, "spec": {"providerID": "x://1"}}),
         patch(f"{NODES}/{{ns}}-p", {"spec": {"providerID": "x://2"}}), error=True),
    made("Node", NODES, "with a status", {"metadata": {"name": "{ns}-s"}, "status": {"capacity": {"cpu": "4", "memory": "1024Ki"}}}),
    refused("Event", EVENTS, "of another namespace", {**named("a"), "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"}}),
    made("Event", EVENTS, "of little", {**named("a"), "involvedObject": {"namespace": "{ns}"}}),
    refused("Lease", LEASES, "a duration of zero", named("a", spec={"leaseDurationSeconds": 0})),
    refused("Lease", LEASES, "transitions below zero", named("a", spec={"leaseTransitions": -1})),
    made("Lease", LEASES, "of nothing", named("a")),
    refused("EndpointSlice", SLICES, "no type", {**named("a"), "endpoints": []}),
    refused("EndpointSlice", SLICES, "an unknown type", {**named("a"), "addressType": "Post", "endpoints": []}),
    refused("EndpointSlice", SLICES, "a loopback address", {**named("a"), "addressType": "IPv4", "endpoints": [{"addresses": ["127.0.0.1"]}]}),
    refused("EndpointSlice", SLICES, "no address", {**named("a"), "addressType": "IPv4", "endpoints": [{"addresses": []}]}),
    refused("EndpointSlice", SLICES, "an address that is none", {**named("a"), "addressType": "IPv4", "endpoints": [{"addresses": ["here"]}]}),
    case("EndpointSlice: its type changes", setup("POST", SLICES, {**named("a"), "addressType": "IPv4", "endpoints": []}),
         patch(f"{SLICES}/a", {"addressType": "IPv6"}), error=True),
    refused("PriorityClass", PRIORITY_CLASSES, "too high", {"metadata": {"name": "{ns}-h"}, "value": 2_000_000_000}),
    refused("PriorityClass", PRIORITY_CLASSES, "a system's name", {"metadata": {"name": "system-{ns}"}, "value": 5}),
    refused("PriorityClass", PRIORITY_CLASSES, "an unknown policy", {"metadata": {"name": "{ns}-u"}, "value": 5, "preemptionPolicy": "Maybe"}),
    case("PriorityClass: its value changes", setup("POST", PRIORITY_CLASSES, {"metadata": {"name": "{ns}-v"}, "value": 5}),
         patch(f"{PRIORITY_CLASSES}/{{ns}}-v", {"value": 6}), error=True),
    refused("PodGroup", POD_GROUPS, "no policy", named("a", spec={})),
    refused("PodGroup", POD_GROUPS, "two policies", pod_group("a", schedulingPolicy={"gang": {"minCount": 1}, "basic": {}})),
    refused("PodGroup", POD_GROUPS, "a gang of none", pod_group("a", schedulingPolicy={"gang": {"minCount": 0}})),
    refused("PodGroup", POD_GROUPS, "a priority class that is not there", pod_group("a", priorityClassName="none")),
    made("PodGroup", POD_GROUPS, "a basic one", pod_group("a", schedulingPolicy={"basic": {}})),
    case("PodGroup: its gang changes", setup("POST", POD_GROUPS, pod_group()), patch(f"{POD_GROUPS}/a", {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}),
         error=True),
    case("PodGroup: its status", setup("POST", POD_GROUPS, pod_group()), patch(f"{POD_GROUPS}/a/status", {"metadata": {"labels": {"x": "y"}}, "status": {"conditions": [
         {"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})),
    case("PUT of a pod that lacks what the server gave it", setup("POST", PODS, pod(), save="a"), put(f"{PODS}/a", pod()), error=True, pods=True,
         explained=(Explained("[0].body*message", "the real message ends with a diff of Go structs"),)),
]  # fmt: skip

CASES: list[Case] = [*METADATA, *POD, *WORKLOADS, *AUTOSCALERS, *OTHERS]
