"""The shape of a body: where an object, a list or a number is needed, anything else is 400 and not a crash later.

Not the whole OpenAPI schema: the fields that the server, the controllers and the nodes of this world read. Fields that
are not named here are kept as they come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fakes.kube.status import bad_request
from harness.kube.port import Json


@dataclass(frozen=True, slots=True)
class Shape:
    """``fields`` of an object; ``each`` the items of a list or the values of a map."""

    type: str
    fields: Mapping[str, Shape] | None = None
    each: Shape | None = None


TEXT, INT, BOOL, ANY = Shape("string"), Shape("integer"), Shape("boolean"), Shape("any")
INT_OR_TEXT, QUANTITY = Shape("int-or-string"), Shape("quantity")
TEXT_MAP = Shape("object", each=TEXT)
TEXTS = Shape("array", each=TEXT)
FREE = Shape("object")


def of(**fields: Shape) -> Shape:
    return Shape("object", fields=fields)


def many(each: Shape) -> Shape:
    return Shape("array", each=each)


_CONDITIONS = many(of(type=TEXT, status=TEXT, reason=TEXT, message=TEXT))
_OWNER = of(apiVersion=TEXT, kind=TEXT, name=TEXT, uid=TEXT, controller=BOOL, blockOwnerDeletion=BOOL)
_META = of(
    name=TEXT, generateName=TEXT, namespace=TEXT, uid=TEXT, resourceVersion=TEXT, generation=INT, labels=TEXT_MAP,
    annotations=TEXT_MAP, finalizers=TEXTS, ownerReferences=many(_OWNER), managedFields=many(FREE),
    deletionGracePeriodSeconds=INT, creationTimestamp=TEXT, deletionTimestamp=TEXT,
)  # fmt: skip
_SELECTOR = of(matchLabels=TEXT_MAP, matchExpressions=many(of(key=TEXT, operator=TEXT, values=TEXTS)))
_PORT = of(name=TEXT, containerPort=INT, hostPort=INT, protocol=TEXT)
_RESOURCES = of(limits=Shape("object", each=QUANTITY), requests=Shape("object", each=QUANTITY))
_PROBE = of(
    httpGet=of(path=TEXT, port=INT_OR_TEXT, scheme=TEXT), tcpSocket=FREE, exec=FREE, initialDelaySeconds=INT,
    periodSeconds=INT, timeoutSeconds=INT, successThreshold=INT, failureThreshold=INT,
)  # fmt: skip
_HANDLER = of(sleep=of(seconds=INT), exec=of(command=TEXTS), httpGet=FREE)
_CONTAINER = of(
    name=TEXT, image=TEXT, imagePullPolicy=TEXT, command=TEXTS, args=TEXTS, ports=many(_PORT),
    env=many(of(name=TEXT, value=TEXT)),
    resources=_RESOURCES, volumeMounts=many(of(name=TEXT, mountPath=TEXT)), readinessProbe=_PROBE, livenessProbe=_PROBE,
    startupProbe=_PROBE, lifecycle=of(preStop=_HANDLER, postStart=_HANDLER),
)  # fmt: skip
_POD_SPEC = of(
    containers=many(_CONTAINER), initContainers=many(_CONTAINER), volumes=many(of(name=TEXT)), restartPolicy=TEXT,
    terminationGracePeriodSeconds=INT, activeDeadlineSeconds=INT, nodeName=TEXT, nodeSelector=TEXT_MAP,
    serviceAccountName=TEXT, serviceAccount=TEXT, priorityClassName=TEXT, priority=INT, preemptionPolicy=TEXT,
    schedulerName=TEXT, automountServiceAccountToken=BOOL, schedulingGroup=of(podGroupName=TEXT), affinity=FREE,
    tolerations=many(of(key=TEXT, operator=TEXT, value=TEXT, effect=TEXT, tolerationSeconds=INT)), securityContext=FREE,
    topologySpreadConstraints=many(FREE), schedulingGates=many(of(name=TEXT)), hostNetwork=BOOL, dnsPolicy=TEXT,
)  # fmt: skip
_CONTAINER_STATUS = of(name=TEXT, ready=BOOL, restartCount=INT, started=BOOL, state=FREE, lastState=FREE, image=TEXT)
_POD_STATUS = of(
    phase=TEXT, reason=TEXT, message=TEXT, podIP=TEXT, hostIP=TEXT, startTime=TEXT, qosClass=TEXT,
    conditions=_CONDITIONS,
    containerStatuses=many(_CONTAINER_STATUS), initContainerStatuses=many(_CONTAINER_STATUS), nominatedNodeName=TEXT,
    podIPs=many(of(ip=TEXT)), observedGeneration=INT,
)  # fmt: skip
_TEMPLATE = of(metadata=_META, spec=_POD_SPEC)
_COUNTS = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "unavailableReplicas",
           "fullyLabeledReplicas", "terminatingReplicas", "observedGeneration")  # fmt: skip
_WORKLOAD_STATUS = of(conditions=_CONDITIONS, **dict.fromkeys(_COUNTS, INT))
_AMOUNT = of(type=TEXT, averageValue=QUANTITY, value=QUANTITY, averageUtilization=INT)
_METRIC_SOURCE = of(
    name=TEXT, container=TEXT, metric=of(name=TEXT, selector=_SELECTOR), target=_AMOUNT, current=_AMOUNT,
    describedObject=of(kind=TEXT, name=TEXT, apiVersion=TEXT),
)  # fmt: skip
_METRICS = many(
    of(type=TEXT, pods=_METRIC_SOURCE, resource=_METRIC_SOURCE, external=_METRIC_SOURCE, object=_METRIC_SOURCE,
       containerResource=_METRIC_SOURCE)
)  # fmt: skip
_ADDRESSES = many(of(type=TEXT, address=TEXT))

_KINDS: dict[str, Shape] = {
    "Namespace": of(spec=of(finalizers=TEXTS), status=of(phase=TEXT, conditions=_CONDITIONS)),
    "Node": of(
        spec=of(providerID=TEXT, unschedulable=BOOL,
            taints=many(of(key=TEXT, value=TEXT, effect=TEXT, timeAdded=TEXT)), podCIDR=TEXT),
        status=of(
            capacity=Shape("object", each=QUANTITY), allocatable=Shape("object", each=QUANTITY), conditions=_CONDITIONS,
            addresses=_ADDRESSES, nodeInfo=FREE,
        ),
    ),
    "Pod": of(spec=_POD_SPEC, status=_POD_STATUS),
    "Service": of(
        spec=of(
            type=TEXT, selector=TEXT_MAP, clusterIP=TEXT, clusterIPs=TEXTS, externalIPs=TEXTS, externalName=TEXT,
            ports=many(of(name=TEXT, port=INT, targetPort=INT_OR_TEXT, protocol=TEXT, nodePort=INT)),
        ),
        status=of(loadBalancer=of(ingress=many(of(ip=TEXT, hostname=TEXT)))),
    ),
    "ConfigMap": of(data=TEXT_MAP, binaryData=TEXT_MAP, immutable=BOOL),
    "Secret": of(data=TEXT_MAP, stringData=TEXT_MAP, type=TEXT),
    "ServiceAccount": of(secrets=many(FREE), imagePullSecrets=many(FREE)),
    "Event": of(
        involvedObject=of(kind=TEXT, namespace=TEXT, name=TEXT, uid=TEXT, apiVersion=TEXT, fieldPath=TEXT),
        reason=TEXT, message=TEXT, type=TEXT, count=INT, source=of(component=TEXT, host=TEXT), series=FREE,
        firstTimestamp=TEXT, lastTimestamp=TEXT, eventTime=TEXT, reportingComponent=TEXT, reportingInstance=TEXT,
    ),
    "Lease": of(spec=of(holderIdentity=TEXT, leaseDurationSeconds=INT, renewTime=TEXT, acquireTime=TEXT,
        leaseTransitions=INT)),
    "Deployment": of(
        spec=of(
            replicas=INT, selector=_SELECTOR, template=_TEMPLATE, paused=BOOL, minReadySeconds=INT,
            revisionHistoryLimit=INT,
            progressDeadlineSeconds=INT,
            strategy=of(type=TEXT, rollingUpdate=of(maxSurge=INT_OR_TEXT, maxUnavailable=INT_OR_TEXT)),
        ),
        status=_WORKLOAD_STATUS,
    ),
    "ReplicaSet": of(
        spec=of(replicas=INT, selector=_SELECTOR, template=_TEMPLATE, minReadySeconds=INT), status=_WORKLOAD_STATUS
    ),
    "HorizontalPodAutoscaler": of(
        spec=of(
            scaleTargetRef=of(kind=TEXT, name=TEXT, apiVersion=TEXT), minReplicas=INT, maxReplicas=INT,
            metrics=_METRICS, behavior=FREE,
        ),
        status=of(
            currentReplicas=INT, desiredReplicas=INT, lastScaleTime=TEXT, conditions=_CONDITIONS,
            currentMetrics=_METRICS,
            observedGeneration=INT,
        ),
    ),
    "PodDisruptionBudget": of(
        spec=of(minAvailable=INT_OR_TEXT, maxUnavailable=INT_OR_TEXT, selector=_SELECTOR,
            unhealthyPodEvictionPolicy=TEXT),
        status=of(
            disruptionsAllowed=INT, currentHealthy=INT, desiredHealthy=INT, expectedPods=INT, observedGeneration=INT,
            disruptedPods=TEXT_MAP, conditions=_CONDITIONS,
        ),
    ),
    "EndpointSlice": of(
        addressType=TEXT,
        endpoints=many(of(addresses=TEXTS, conditions=Shape("object", each=BOOL), targetRef=FREE, nodeName=TEXT,
            zone=TEXT)),
        ports=many(of(name=TEXT, port=INT, protocol=TEXT)),
    ),
    "PriorityClass": of(value=INT, globalDefault=BOOL, description=TEXT, preemptionPolicy=TEXT),
    "PodGroup": of(
        spec=of(schedulingPolicy=of(gang=of(minCount=INT), basic=FREE), priorityClassName=TEXT),
        status=of(conditions=_CONDITIONS)
    ),
    "NodePool": of(
        spec=of(template=of(metadata=FREE, spec=FREE), limits=Shape("object", each=QUANTITY), weight=INT,
            disruption=FREE),
        status=of(conditions=_CONDITIONS),
    ),
    "NodeClaim": of(
        spec=of(
            requirements=many(of(key=TEXT, operator=TEXT, values=TEXTS)),
            taints=many(of(key=TEXT, value=TEXT, effect=TEXT)),
            resources=_RESOURCES, nodeClassRef=of(group=TEXT, kind=TEXT, name=TEXT), terminationGracePeriod=TEXT,
        ),
        status=of(
            conditions=_CONDITIONS, nodeName=TEXT, providerID=TEXT, imageID=TEXT,
            capacity=Shape("object", each=QUANTITY), allocatable=Shape("object", each=QUANTITY),
        ),
    ),
}  # fmt: skip


def check_structure(obj: Json) -> None:
    """Of an object that has its kind."""
    _check(_META, obj.get("metadata", {}), "metadata", obj["kind"])
    _check(_KINDS.get(obj["kind"], FREE), obj, "", obj["kind"])


def _check(shape: Shape, value: Any, path: str, kind: str) -> None:
    if not _fits(shape.type, value):
        article = "an" if shape.type[0] in "aeio" else "a"
        raise bad_request(
            f"{kind}: cannot decode {_json_type(value)} into field {path}: {article} {shape.type} is needed"
        )
    if isinstance(value, dict):
        for name, item in value.items():
            inner = (shape.fields or {}).get(name) or shape.each
            if inner is not None and item is not None:
                _check(inner, item, f"{path}.{name}" if path else name, kind)
    elif isinstance(value, list) and shape.each is not None:
        for i, item in enumerate(value):
            _check(shape.each, item, f"{path}[{i}]", kind)


def _fits(type: str, value: Any) -> bool:
    match type:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "int-or-string":
            return isinstance(value, int | str) and not isinstance(value, bool)
        case "quantity":
            return isinstance(value, int | float | str) and not isinstance(value, bool)
        case _:
            return True


def _json_type(value: Any) -> str:
    names = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "a boolean",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), "null")
