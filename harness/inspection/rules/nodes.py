"""Whether nodes with GPUs can come when none is there, and whether they stay."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.inspection.objects import Objects
from harness.inspection.rule import Rule, Severity, Sighting
from harness.inspection.seen import Seen, dig, items, labels_of, mapping, text, texts, whole
from harness.inspection.workloads import GPU_RESOURCE, RUNS_ON, Workload, gpus_of, seconds
from harness.kube.port import Json
from harness.spec.document import KeyPath

_POOL_SPEC: KeyPath = ("spec", "template", "spec")
_GPU_FAMILY = re.compile(
    r"^(p[2-6](d|de|e|en|-b\d+|-gb\d+)?|g[3-7](dn|ad|e|f|s|en|r|i)?|gr6f?|inf[12]|trn[12]n?|dl[12]q?|vt1|f[12])$"
)
"""Instance families of EC2 with accelerators, as their names go (docs of Amazon EC2, accelerated computing)."""
_GPU_WORD = re.compile(r"(^|[^a-z])(gpu|nvidia|cuda|h100|h200|a100|l40s?|b200)([^a-z]|$)", re.IGNORECASE)
_FAMILY_KEYS = ("karpenter.k8s.aws/instance-family", "eks.amazonaws.com/instance-family")
_TYPE_KEY = "node.kubernetes.io/instance-type"
_GPU_KEYS = re.compile(r"/instance-gpu-(name|manufacturer|count|memory)$|/sku-gpu-|/instance-accelerator-")
_CAPI = "cluster.x-k8s.io"
_CAPI_LEAST = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
_CAPI_GPUS = "capacity.cluster-autoscaler.kubernetes.io/gpu-count"
_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_SOON_S = 60.0
_DURATION = re.compile(r"(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+")
_WELL_KNOWN = re.compile(r"(^|\.)(kubernetes\.io|k8s\.io|karpenter\.sh|karpenter\.k8s\.aws|karpenter\.azure\.com)/")


def pools(objects: Objects) -> list[Seen]:
    return list(objects.of_group("sh", "NodePool"))


def _in_values(pool: Seen, key: str) -> set[str] | None:
    """The values that a requirement of the pool holds a label to; None where it holds it to none."""
    found: set[str] | None = None
    for _, requirement in items(pool.data, *_POOL_SPEC, "requirements"):
        if text(requirement, "key") == key and text(requirement, "operator") == "In":
            values = set(texts(requirement, "values"))
            found = values if found is None else found & values
    return found


def _families(pool: Seen) -> set[str] | None:
    """The instance families that it may take, where it names them."""
    named = [found for key in _FAMILY_KEYS if (found := _in_values(pool, key)) is not None]
    types = _in_values(pool, _TYPE_KEY)
    if types is not None and all("." in kind for kind in types):
        named.append({kind.partition(".")[0] for kind in types})
    return set.intersection(*named) if named else None


def _gives_no_gpu(pool: Seen) -> str:
    """Why no node of the pool can have a GPU; empty where one might."""
    families = _families(pool)
    if families is not None and not any(_GPU_FAMILY.match(family) for family in families):
        return f"it takes instances of {', '.join(sorted(families)[:4]) or 'no family'} only, which have no GPU"
    for _, requirement in items(pool.data, *_POOL_SPEC, "requirements"):
        if _GPU_KEYS.search(text(requirement, "key")) and text(requirement, "operator") == "DoesNotExist":
            return f"it takes only instances without {text(requirement, 'key')}"
    for name, amount in mapping(pool.data, "spec", "limits").items():
        if isinstance(name, str) and GPU_RESOURCE.match(name) and str(amount) == "0":
            return f"its limits allow no {name}"
    return ""


def _turns_away(pool: Seen, workload: Workload) -> str:
    """Why the workload's pods cannot go on a node of the pool; empty where they might."""
    tolerations = [t for _, t in items(workload.pod_spec, "tolerations")]
    for _, taint in items(pool.data, *_POOL_SPEC, "taints"):
        hard = text(taint, "effect") in ("NoSchedule", "NoExecute")
        if hard and not any(tolerates(t, taint) for t in tolerations) and not _tolerated_by_admission(taint, workload):
            return f"its taint {text(taint, 'key')} is not tolerated"
    given = labels_of(pool.data, "spec", "template", "metadata", "labels")
    for key, value in labels_of(workload.pod_spec, "nodeSelector").items():
        if key == "karpenter.sh/nodepool":
            if value != pool.name:
                return f"nodeSelector asks for the pool {value}"
            continue
        allowed = {given[key]} if key in given else _in_values(pool, key)
        if allowed is not None and value not in allowed:
            return f"nodeSelector asks for {key}: {value}"
    return ""


def _tolerated_by_admission(taint: Json, workload: Workload) -> bool:
    """ExtendedResourceToleration, an admission plugin that managed clusters have on, tolerates taints that are named
    like the resource."""
    return any(text(taint, "key") in gpus_of(container) for _, container in workload.gpu_containers)


def tolerates(toleration: Json, taint: Json) -> bool:
    if text(toleration, "effect") not in ("", text(taint, "effect")):
        return False
    if text(toleration, "operator") == "Exists":
        return text(toleration, "key") in ("", text(taint, "key"))
    return text(toleration, "key") == text(taint, "key") and text(toleration, "value") == text(taint, "value")


def _no_pool_gives_gpus(objects: Objects) -> Iterator[Sighting]:
    known = pools(objects)
    if not known or any(_has_gpus(node) for node in objects.of("Node")):
        return
    for workload in objects.workloads:
        if not workload.asks_for_gpus or workload.object.kind not in RUNS_ON:
            continue
        asked = objects.around(known, workload.object)
        why = [(pool.name, _gives_no_gpu(pool) or _turns_away(pool, workload)) for pool in asked]
        if all(reason for _, reason in why):
            said = "; ".join(f"NodePool {name}: {reason}" for name, reason in why)
            place, _ = workload.main
            yield Sighting(workload.object, (*place, "resources"), said, others=tuple(asked))


def _has_gpus(node: Seen) -> bool:
    return any(GPU_RESOURCE.match(name) for name in mapping(node.data, "status", "allocatable"))


def _template_without_gpus(objects: Objects) -> Iterator[Sighting]:
    """Cluster API: what a node of an empty group would have is what the annotations say, and nothing else."""
    for group in (*objects.of_group(_CAPI, "MachineDeployment"), *objects.of_group(_CAPI, "MachinePool")):
        annotations = group.annotations
        least, told = annotations.get(_CAPI_LEAST), annotations.get(_CAPI_GPUS)
        if least == "0" and told in (None, "0") and _means_gpus(group):
            at = ("metadata", "annotations", _CAPI_GPUS)
            yield Sighting(
                group, at, f"it may be empty, is meant for GPUs, and {_CAPI_GPUS} is {told or 'not written'}"
            )


def _means_gpus(group: Seen) -> bool:
    labels = labels_of(group.data, "spec", "template", "metadata", "labels")
    taints = [text(t, "key") for _, t in items(group.data, "spec", "template", "spec", "taints")]
    return any(_GPU_WORD.search(word) for word in (group.name, *labels, *labels.values(), *taints))


def _template_without_labels(objects: Objects) -> Iterator[Sighting]:
    """eksctl: of an empty self-managed group Cluster Autoscaler knows the labels only by tags of its ASG."""
    asked = {}
    for workload in objects.workloads:
        if workload.asks_for_gpus:
            for key, value in labels_of(workload.pod_spec, "nodeSelector").items():
                asked[key, value] = workload
    for config in objects.of_group("io", "ClusterConfig"):
        for index, group in items(config.data, "nodeGroups"):
            if whole(group, "minSize") != 0 or group.get("propagateASGTags") is True:
                continue
            tags = mapping(group, "tags")
            for key, value in labels_of(group, "labels").items():
                tag = f"k8s.io/cluster-autoscaler/node-template/label/{key}"
                if (key, value) in asked and tag not in tags and not _WELL_KNOWN.search(key):
                    yield Sighting(
                        config, ("nodeGroups", index, "tags"),
                        f"group {text(group, 'name')} may be empty, and without the tag {tag} nobody knows then that "
                        f"its nodes have {key}: {value}, which {asked[key, value].object.ref} asks for",
                    )  # fmt: skip


def _claims_only(objects: Objects) -> Iterator[Sighting]:
    if not pools(objects):
        return
    for workload in objects.workloads:
        for place, container in workload.gpu_containers:
            if items(container, "resources", "claims") and not gpus_of(container):
                at = (*place, "resources", "claims")
                yield Sighting(
                    workload.object, at, f"container {text(container, 'name')} asks for its GPU by a ResourceClaim"
                )
                break


def _guard_in_wrong_place(objects: Objects) -> Iterator[Sighting]:
    for workload in objects.workloads:
        for key in (_DO_NOT_DISRUPT, _SAFE_TO_EVICT):
            at: KeyPath = ("metadata", "annotations", key)
            if key in workload.object.annotations and workload.at and key not in workload.annotations:
                right = f"{key} under {'.'.join(map(str, workload.at))}.metadata.annotations"
                yield Sighting(
                    workload.object, at, f"{key} stands on the {workload.object.kind}, not on its pods", right
                )


def _guard_without_meaning(objects: Objects) -> Iterator[Sighting]:
    for workload in objects.workloads:
        value = workload.annotations.get(_DO_NOT_DISRUPT)
        if value is not None and value not in ("true", "false") and not _DURATION.fullmatch(value):
            at = (*workload.at, "metadata", "annotations", _DO_NOT_DISRUPT)
            yield Sighting(workload.object, at, f'{_DO_NOT_DISRUPT}: "{value}" is neither true nor a duration')


def _consolidates_at_once(objects: Objects) -> Iterator[Sighting]:
    for pool in pools(objects):
        disruption = mapping(pool.data, "spec", "disruption")
        policy = text(disruption, "consolidationPolicy") or "WhenEmptyOrUnderutilized"
        after = text(disruption, "consolidateAfter") or "0s"
        after_s = 0.0 if after == "0" else _seconds(after)
        soon = after_s is not None and after_s < _SOON_S
        if policy == "WhenEmptyOrUnderutilized" and soon and not _held_back(disruption) and _for_gpus(pool):
            written = "" if "consolidateAfter" in disruption else " (the default)"
            at = ("spec", "disruption", "consolidateAfter")
            yield Sighting(pool, at, f"consolidateAfter: {after}{written} with {policy}, on nodes with GPUs")


def _held_back(disruption: Json) -> bool:
    """Whether a budget lets no underused node go, at some hours at least: somebody has thought of it."""
    return any(
        text(budget, "nodes") in ("0", "0%") and (not budget.get("reasons") or "Underutilized" in budget["reasons"])
        for _, budget in items(disruption, "budgets")
        if isinstance(budget.get("reasons") or [], list)
    )


def _for_gpus(pool: Seen) -> bool:
    families = _families(pool)
    if families and all(_GPU_FAMILY.match(family) for family in families):
        return True
    taints = [text(t, "key") for _, t in items(pool.data, *_POOL_SPEC, "taints")]
    limits = [name for name in mapping(pool.data, "spec", "limits") if isinstance(name, str)]
    keys = [
        text(r, "key") for _, r in items(pool.data, *_POOL_SPEC, "requirements")
        if text(r, "operator") in ("In", "Exists", "Gt")
    ]  # fmt: skip
    return any(GPU_RESOURCE.match(name) for name in taints + limits) or any(_GPU_KEYS.search(key) for key in keys)


def _pool_cuts_grace(objects: Objects) -> Iterator[Sighting]:
    for pool in pools(objects):
        limit_s = _seconds(dig(pool.data, *_POOL_SPEC, "terminationGracePeriod"))
        if limit_s is None:
            continue
        for workload in objects.gpu_servers:
            named = text(workload.pod_spec, "nodeSelector", "karpenter.sh/nodepool")
            around = objects.around(pools(objects), workload.object)
            only = around == [pool] and not _turns_away(pool, workload)
            certain = only or (named == pool.name and pool in around)
            if certain and workload.grace_s > limit_s:
                yield Sighting(
                    pool, (*_POOL_SPEC, "terminationGracePeriod"),
                    f"it gives a node {limit_s:g} s to go, but pods of {workload.object.ref} have a grace of "
                    f"{workload.grace_s} s",
                    others=(workload.object,),
                )  # fmt: skip


def _seconds(value: object) -> float | None:
    """Of a duration, which is a text with its unit; None for ``Never``."""
    return seconds(value) if isinstance(value, str) and value.strip("0123456789.") else None


NO_POOL_GIVES_GPUS = Rule(
    "scale-from-zero-without-gpu", Severity.ERROR,
    "No NodePool can make a node for these GPU pods, so with none there they wait for ever.",
    "a NodePool whose requirements allow instances with GPUs, and whose taints the pods tolerate",
    "widen the requirements, or add the toleration",
    "Pods from zero waited on `Insufficient nvidia.com/gpu`, for what the autoscaler thought it would get had no GPU.",
    "kubernetes/autoscaler#5278", RUNS_ON, _no_pool_gives_gpus,
)  # fmt: skip
TEMPLATE_WITHOUT_GPUS = Rule(
    "node-template-without-gpu", Severity.ERROR,
    "Cluster Autoscaler does not know that a node of this empty group would have GPUs, and never makes one.",
    "capacity.cluster-autoscaler.kubernetes.io/gpu-count and gpu-type beside cpu and memory",
    "add the annotations, or keep one node",
    "Pods from zero waited on `Insufficient nvidia.com/gpu`, for the template of the group had none.",
    "kubernetes/autoscaler#5278", ("MachineDeployment", "MachinePool"), _template_without_gpus,
)  # fmt: skip
TEMPLATE_WITHOUT_LABELS = Rule(
    "node-template-without-label", Severity.ERROR,
    "Cluster Autoscaler does not know that a node of this empty group would have the label that the pods ask for.",
    "a tag k8s.io/cluster-autoscaler/node-template/label/… for each label, or propagateASGTags: true",
    "add the tag",
    "Pods from zero waited, for the template of the group did not match them.",
    "kubernetes/autoscaler#5278; Cluster Autoscaler on AWS, Auto-Discovery: scaling a group from 0", ("ClusterConfig",),
    _template_without_labels,
)  # fmt: skip
CLAIMS_AND_KARPENTER = Rule(
    "claimed-gpu-without-node", Severity.WARNING,
    "Karpenter does not count ResourceClaims by default, so GPU pods that have nothing else get no node.",
    "IGNORE_DRA_REQUESTS=false in a Karpenter whose provider supports it, or nodes that are there already",
    "ask by nvidia.com/gpu, or see that nodes come by other means",
    "Pods that asked for their GPU by a ResourceClaim alone never got a node.",
    "aws/karpenter-provider-aws#9519, kubernetes-sigs/karpenter#3228, #1231", RUNS_ON, _claims_only,
)  # fmt: skip
GUARD_IN_WRONG_PLACE = Rule(
    "disruption-guard-in-wrong-place", Severity.ERROR,
    "The annotation protects nothing: node autoscalers read it from pods.",
    "the annotation in the pod template",
    "move it to the pod template's metadata.annotations",
    "Nodes whose pods were meant to be left alone were deleted with the pods running.",
    "kubernetes-sigs/karpenter#3185 (what it costs); karpenter v1.14.1 reads pods and nodes only", RUNS_ON,
    _guard_in_wrong_place,
)  # fmt: skip
GUARD_WITHOUT_MEANING = Rule(
    "disruption-guard-without-meaning", Severity.ERROR,
    "Karpenter ignores this value, so the pod is not protected.",
    '"true", or a duration such as "30m"',
    "correct the value",
    "An invalid value counts as none (event InvalidDoNotDisruptAnnotation).",
    "karpenter v1.14.1; kubernetes-sigs/karpenter#3185 (what it costs)", RUNS_ON, _guard_without_meaning,
)  # fmt: skip
CONSOLIDATES_AT_ONCE = Rule(
    "consolidation-at-once", Severity.WARNING,
    "Karpenter moves model servers as soon as a node is underused, each time with the load of the model.",
    "consolidateAfter of a minute or more, WhenEmpty, or a budget with nodes: \"0\" for Underutilized",
    "set consolidateAfter above the time that a replica takes to serve",
    "Underused nodes were churned: twenty pods and more moved onto a newer, empty node.",
    "aws/karpenter-provider-aws#7146", ("NodePool",), _consolidates_at_once,
)  # fmt: skip
POOL_CUTS_GRACE = Rule(
    "nodepool-cuts-grace", Severity.ERROR,
    "Karpenter ends the pods of a leaving node before their own grace is over, past every budget.",
    "terminationGracePeriod of the NodePool above the grace of its pods",
    "raise terminationGracePeriod",
    "When a node's time is up, pods are deleted with the grace cut to what is left.",
    "karpenter v1.14.1, node termination; kubernetes-sigs/karpenter#2802", ("NodePool",), _pool_cuts_grace,
)  # fmt: skip

NODES = (
    NO_POOL_GIVES_GPUS, TEMPLATE_WITHOUT_GPUS, TEMPLATE_WITHOUT_LABELS, CLAIMS_AND_KARPENTER, GUARD_IN_WRONG_PLACE,
    GUARD_WITHOUT_MEANING, CONSOLIDATES_AT_ONCE, POOL_CUTS_GRACE,
)  # fmt: skip
