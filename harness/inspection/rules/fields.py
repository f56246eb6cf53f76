"""Keys and values of manifests that the API server drops in silence, or refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.inspection.crds.shapes import Shape, shape_of
from harness.inspection.objects import Objects
from harness.inspection.rule import Rule, Severity, Sighting
from harness.inspection.rules.writers import last_applied
from harness.inspection.seen import OPERATORS, Seen, dig, dotted, items, mapping, text
from harness.inspection.types import Wrong, belongs, pod_template, type_for, wrongs
from harness.inspection.workloads import workloads_of
from harness.kube.port import Json
from harness.spec.document import KeyPath, did_you_mean
from harness.spec.mistakes import show

REMOVED = {
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler"): ("autoscaling/v2", "Kubernetes 1.25"),
    ("autoscaling/v2beta2", "HorizontalPodAutoscaler"): ("autoscaling/v2", "Kubernetes 1.26"),
    ("policy/v1beta1", "PodDisruptionBudget"): ("policy/v1", "Kubernetes 1.25"),
    ("batch/v1beta1", "CronJob"): ("batch/v1", "Kubernetes 1.25"),
    ("discovery.k8s.io/v1beta1", "EndpointSlice"): ("discovery.k8s.io/v1", "Kubernetes 1.25"),
    **{
        (f"{group}/{version}", kind): ("apps/v1", "Kubernetes 1.16")
        for group, version, kinds in (
            ("extensions", "v1beta1", ("Deployment", "DaemonSet", "ReplicaSet")),
            ("apps", "v1beta1", ("Deployment", "StatefulSet")),
            ("apps", "v1beta2", ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")),
        )
        for kind in kinds
    },
    ("extensions/v1beta1", "NetworkPolicy"): ("networking.k8s.io/v1", "Kubernetes 1.16"),
    ("extensions/v1beta1", "Ingress"): ("networking.k8s.io/v1", "Kubernetes 1.22"),
    **{
        (f"{group}/v1beta1", kind): (f"{group}/v1", "Kubernetes 1.22")
        for group, kinds in {
            "networking.k8s.io": ("Ingress", "IngressClass"),
            "rbac.authorization.k8s.io": ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
            "scheduling.k8s.io": ("PriorityClass",),
            "coordination.k8s.io": ("Lease",),
            "apiextensions.k8s.io": ("CustomResourceDefinition",),
            "apiregistration.k8s.io": ("APIService",),
            "admissionregistration.k8s.io": ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
            "storage.k8s.io": ("CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"),
        }.items()
        for kind in kinds
    },
    ("batch/v2alpha1", "CronJob"): ("batch/v1", "Kubernetes 1.21"),
    ("policy/v1beta1", "PodSecurityPolicy"): ("Pod Security Admission", "Kubernetes 1.25"),
    ("node.k8s.io/v1beta1", "RuntimeClass"): ("node.k8s.io/v1", "Kubernetes 1.25"),
    ("events.k8s.io/v1beta1", "Event"): ("events.k8s.io/v1", "Kubernetes 1.25"),
    ("storage.k8s.io/v1beta1", "CSIStorageCapacity"): ("storage.k8s.io/v1", "Kubernetes 1.27"),
    **{
        (f"flowcontrol.apiserver.k8s.io/{version}", kind): ("flowcontrol.apiserver.k8s.io/v1", since)
        for version, since in (
            ("v1beta1", "Kubernetes 1.26"), ("v1beta2", "Kubernetes 1.29"), ("v1beta3", "Kubernetes 1.32"),
        )
        for kind in ("FlowSchema", "PriorityLevelConfiguration")
    },
    ("karpenter.sh/v1alpha5", "Provisioner"): ("karpenter.sh/v1 NodePool", "Karpenter 1.0"),
    ("karpenter.sh/v1alpha5", "Machine"): ("karpenter.sh/v1 NodeClaim", "Karpenter 1.0"),
    ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate"): ("karpenter.k8s.aws/v1 EC2NodeClass", "Karpenter 1.0"),
    ("karpenter.k8s.aws/v1beta1", "EC2NodeClass"): ("karpenter.k8s.aws/v1", "Karpenter 1.1"),
    ("karpenter.sh/v1beta1", "NodePool"): ("karpenter.sh/v1", "Karpenter 1.1"),
    ("karpenter.sh/v1beta1", "NodeClaim"): ("karpenter.sh/v1", "Karpenter 1.1"),
    ("llmd.ai/v1alpha1", "VariantAutoscaling"): (
        "the annotation llm-d.ai/managed on the HPA or ScaledObject", "WVA v0.8.0",
    ),
}  # fmt: skip
"""By API version and kind: what there is instead, and since when it is gone."""
SERVED: dict[str, tuple[str, ...]] = {
    "v1": (
        "Binding", "ComponentStatus", "ConfigMap", "Endpoints", "Event", "LimitRange", "List", "Namespace", "Node",
        "PersistentVolume", "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController", "ResourceQuota",
        "Secret", "Service", "ServiceAccount",
    ),
    "apps/v1": ("ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "autoscaling/v1": ("HorizontalPodAutoscaler", "Scale"),
    "autoscaling/v2": ("HorizontalPodAutoscaler",),
    "batch/v1": ("CronJob", "Job"),
    "policy/v1": ("Eviction", "PodDisruptionBudget"),
}  # fmt: skip
"""All that Kubernetes 1.37 has in these groups, which are its own alone."""
_OWN_GROUPS = {version.rpartition("/")[0] for version in SERVED}
_MOST = 20
"""Of one object: who writes a whole section in the wrong place need not read each of its keys."""


_PERCENT = re.compile(r"0*(\d{1,2}|100)%")


def _shapes(objects: Objects) -> dict[str, Shape]:
    """Of the CRDs among the objects."""
    found: dict[str, Shape] = {}
    for crd in objects.of("CustomResourceDefinition"):
        for _, version in items(crd.data, "spec", "versions"):
            schema = version.get("schema")
            shape = shape_of(schema.get("openAPIV3Schema")) if isinstance(schema, dict) else None
            group, kind = text(crd.data, "spec", "group"), text(crd.data, "spec", "names", "kind")
            if shape is not None:
                found[f"{group}/{text(version, 'name')}.{kind}"] = shape
    return found


def _wrongs(objects: Objects) -> Iterator[tuple[Seen, Wrong]]:
    shapes = _shapes(objects)
    for seen in objects.seen:
        # What the API server dropped is not in a live object any more, but in what was applied.
        data: Json = last_applied(seen) if objects.live else seen.data
        if not data or seen.kind == "CustomResourceDefinition":
            continue
        if (type_ := type_for(seen.api_version, seen.kind, shapes)) is not None:
            found = wrongs(type_, data)
        else:
            found = (w for owned in workloads_of(seen) for w in wrongs(pod_template(), owned.template, owned.at))
        for count, wrong in enumerate(found):
            if count < _MOST:
                yield seen, wrong


def _unknown(objects: Objects) -> Iterator[Sighting]:
    for seen, wrong in _wrongs(objects):
        if not wrong.wanted:
            struct_at = dotted(wrong.parents[-1][0]) or "the top"
            right = belongs(wrong) or f"known there: {', '.join(sorted(wrong.parents[-1][1].fields))}"
            yield Sighting(seen, wrong.at, f"{struct_at} of a {seen.kind} has no field {wrong.at[-1]}", right)


def _mistyped(objects: Objects) -> Iterator[Sighting]:
    for seen, wrong in _wrongs(objects):
        if wrong.wanted:
            # A report goes where a secret must not.
            if seen.kind == "Secret":
                yield Sighting(seen, wrong.at, "it is another value", wrong.wanted.partition(":")[0])
            else:
                yield Sighting(seen, wrong.at, f"it is {show(wrong.value)}", wrong.wanted)
    yield from _refused(objects)


def _refused(objects: Objects) -> Iterator[Sighting]:
    """Values whose type is right, or not known here, and which the API server refuses all the same."""
    for budget in objects.of_group("policy", "PodDisruptionBudget"):
        # kubernetes v1.37 pkg/apis/policy/validation: a number in quotes is no percentage.
        for key in ("minAvailable", "maxUnavailable"):
            amount = dig(budget.data, "spec", key)
            wrong = isinstance(amount, str) and not _PERCENT.fullmatch(amount)
            if wrong or (isinstance(amount, int) and amount < 0):
                yield Sighting(budget, ("spec", key), f"it is {show(amount)}", "a whole number, or a text such as 25%")
        for index, term in items(budget.data, "spec", "selector", "matchExpressions"):
            if (operator := text(term, "operator")) not in OPERATORS:
                at: KeyPath = ("spec", "selector", "matchExpressions", index, "operator")
                yield Sighting(budget, at, f"it is {show(operator)}", f"one of {', '.join(OPERATORS)}")
    for scaled in objects.of_group("sh", "ScaledObject", "ScaledJob"):
        for index, trigger in items(scaled.data, "spec", "triggers"):
            for key, value in mapping(trigger, "metadata").items():
                if isinstance(value, bool | int | float):
                    at = ("spec", "triggers", index, "metadata", key)
                    yield Sighting(scaled, at, f"it is {show(value)}", f'a text: "{show(value)}", in quotes')


def _removed(objects: Objects) -> Iterator[Sighting]:
    for seen in objects.seen:
        if gone := REMOVED.get((seen.api_version, seen.kind)):
            instead, since = gone
            said = f"{seen.api_version} {seen.kind} is gone since {since}"
            yield Sighting(seen, ("apiVersion",), said, instead)
        elif not objects.live and seen.group in _OWN_GROUPS and seen.kind not in SERVED.get(seen.api_version, ()):
            there = [version for version, kinds in SERVED.items() if seen.kind in kinds]
            kinds = {kind for known in SERVED.values() for kind in known}
            right = " or ".join(there) or did_you_mean(seen.kind, kinds)
            yield Sighting(seen, ("apiVersion",), f"{seen.api_version} has no {seen.kind}", right)


UNKNOWN_FIELD = Rule(
    "unknown-field", Severity.ERROR,
    "The API server drops this key, and what it was meant to do is not done.",
    "the key where it belongs",
    "move or correct it; kubectl apply --validate=strict refuses such a manifest",
    "A grace written under the container was dropped, and the pods had thirty seconds.",
    "kubernetes v1.37 types; kubernetes.io, Field validation", ("every kind whose fields are known",), _unknown,
)  # fmt: skip
MISTYPED_VALUE = Rule(
    "value-of-wrong-type", Severity.ERROR,
    "The API server refuses the object: a value is not of the type that its key has.",
    "a value of that type",
    "correct it",
    "The object is not changed, and what runs is what was there before.",
    "kubernetes v1.37 types", ("every kind whose fields are known",), _mistyped,
)  # fmt: skip
REMOVED_API_VERSION = Rule(
    "removed-api-version", Severity.ERROR,
    "No server of today knows this version of the kind.",
    "the version that took its place, or that has the kind",
    "change apiVersion, and the fields that changed with it",
    "The object is refused, and nobody scales, protects or makes what it was for.",
    "kubernetes.io, Deprecated API Migration Guide; karpenter.sh, Upgrade Guide",
    ("every kind",), _removed,
)  # fmt: skip

FIELDS = (UNKNOWN_FIELD, MISTYPED_VALUE, REMOVED_API_VERSION)
