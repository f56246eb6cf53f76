"""What no fault may hit, whatever the experiment asks for; each guard fails its test when it is taken out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults_ground import add_namespace, add_node, make_ground, make_kube

from fakes.kube.local import LocalKube
from harness.errors import GuardRefused
from harness.faults.catalogue.apply_objects import ApplyObjects
from harness.faults.catalogue.capacity import CapacityRefused
from harness.faults.catalogue.consolidation import Consolidation
from harness.faults.catalogue.node_deleted import NodeDeleted
from harness.faults.catalogue.pods import PodLoss
from harness.faults.catalogue.rollout import RollingRestart
from harness.faults.fault import Fault
from harness.faults.guards import OPT_IN_LABEL
from harness.faults.port import Ground
from harness.faults.spared import OBSERVER_LABEL, spared_nodes
from harness.kube.port import CONFIG_MAP, NAMESPACE, NODE, NODE_POOL, PDB, POD
from harness.run.playing import NoTargets, Play, check_pools, find_targets, read_pods

NS = "inference"
OPEN = {OPT_IN_LABEL: "allowed"}


@pytest.fixture
async def kube() -> LocalKube:
    """Nodes a to d, all of one NodePool; on a runs CoreDNS with its budget, on b the gateway, on c the harness."""
    kube = make_kube()
    await add_namespace(kube, NS)
    for name in "abcd":
        await add_node(kube, name, **OPEN, **{"karpenter.sh/nodepool": "spot"})
    await add_pod(kube, "kube-system", "coredns-1", "a", {"k8s-app": "kube-dns"})
    await add_pod(kube, NS, "gateway-1", "b", {OBSERVER_LABEL: "gateway"})
    await add_pod(kube, NS, "harness-0", "c", {})
    await add_pod(kube, "kube-system", "kube-proxy-1", "d", {"k8s-app": "kube-proxy"})  # no budget protects it
    await add_pod(kube, NS, "llm-1", "d", {"app": "llm"})
    selector = {"matchLabels": {"k8s-app": "kube-dns"}}
    for namespace, labels in (("kube-system", selector), (NS, {"matchLabels": {"app": "llm"}})):
        budget = {"minAvailable": 1, "selector": labels}
        await kube.create(PDB, {"metadata": {"name": "budget", "namespace": namespace}, "spec": budget})
    return kube


async def add_pod(kube: LocalKube, namespace: str, name: str, node: str, labels: dict[str, str]) -> None:
    meta = {"name": name, "namespace": namespace, "labels": labels}
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    await kube.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    await kube.patch(POD, name, {"status": {"phase": "Running"}}, namespace, subresource="status")


def deleted(count: int, selector: str = "karpenter.sh/nodepool=spot") -> Fault:
    return NodeDeleted.model_validate({"after_s": 0, "nodes": {"selector": selector, "count": count}})


async def picked(ground: Ground, fault: Fault, *planned: str) -> tuple[str, ...]:
    try:
        return await find_targets(Play(fault, f"{fault.name}-1", 1, planned), ground)
    except NoTargets as error:
        raise error.cause from None


async def test_nodes_of_the_observer_and_of_protected_system_pods_are_spared(kube: LocalKube) -> None:
    spared = await spared_nodes(kube, "harness-0")
    assert {n: why for n, why in spared.items() if n in "abcd"} == {
        "a": "kube-system/coredns-1 is the system's, and PodDisruptionBudget budget protects it",
        "b": "inference/gateway-1 observes the run",
        "c": "the harness runs there, as inference/harness-0",
    }
    assert (await spared_nodes(kube, "d"))["d"] == "the harness runs on it"


async def test_a_pick_goes_around_them_even_where_they_were_planned(kube: LocalKube, tmp_path: Path) -> None:
    async with make_ground(tmp_path, kube) as ground:
        assert await picked(ground, deleted(1), "a") in (("c",), ("d",))
        assert await picked(ground, deleted(2), "a", "b") in (("c", "d"), ("d", "c"))
        with pytest.raises(GuardRefused, match=r"3 wanted, but 2 of 2.*spared are a: kube-system/coredns-1"):
            await picked(ground, deleted(3))


async def test_a_pool_with_such_a_node_is_not_drained(kube: LocalKube, tmp_path: Path) -> None:
    fault = Consolidation.model_validate({"after_s": 0, "pool": "spot", "hold_s": 60})
    async with make_ground(tmp_path, kube) as ground:
        with pytest.raises(GuardRefused, match="would drain nodes that are spared: a: kube-system/coredns-1"):
            await picked(ground, fault)


async def test_a_pod_that_observes_is_no_target(kube: LocalKube, tmp_path: Path) -> None:
    async with make_ground(tmp_path, kube) as ground:
        assert [pod.name for pod in await read_pods(ground)] == ["inference/harness-0", "inference/llm-1"]


async def test_the_systems_namespaces_are_nobodys_workload(kube: LocalKube, tmp_path: Path) -> None:
    fault = PodLoss.model_validate({"after_s": 0, "pods": {"selector": "k8s-app", "count": 1}, "how": "delete"})
    async with make_ground(tmp_path, kube) as ground:
        with pytest.raises(GuardRefused, match="kube-system is the system's own"):
            await picked(replace(ground, namespace="kube-system"), fault)


async def test_in_a_cluster_of_others_the_namespace_opts_in(kube: LocalKube, tmp_path: Path) -> None:
    fault = RollingRestart.model_validate({"after_s": 0, "deployment": "llm", "hold_s": 60})
    async with make_ground(tmp_path, kube, target="kubeconfig") as ground:
        with pytest.raises(GuardRefused, match="namespace inference did not opt in") as refused:
            await picked(ground, fault)
        assert refused.value.hint == f"kubectl label namespace inference {OPT_IN_LABEL}=allowed"
        await kube.patch(NAMESPACE, NS, {"metadata": {"labels": OPEN}})
        assert await picked(ground, fault) == ("Deployment/llm",)


@pytest.mark.parametrize(
    ("manifest", "refused"),
    [
        ({"kind": "ConfigMap", "metadata": {"name": "x", "namespace": NS}}, None),
        ({"kind": "ConfigMap", "metadata": {"name": "x", "namespace": "kube-system"}}, "is the system's own"),
        ({"kind": "ConfigMap", "metadata": {"name": "x"}}, "namespace default did not opt in"),
        ({"kind": "Node", "metadata": {"name": "x"}}, "objects of the whole cluster"),
    ],
)
async def test_in_a_cluster_of_others_all_namespaces_of_a_manifest_opt_in(
    kube: LocalKube, tmp_path: Path, manifest: dict[str, Any], refused: str | None
) -> None:
    objects = ((NODE if manifest["kind"] == "Node" else CONFIG_MAP, manifest),)
    fault = ApplyObjects.model_validate({"after_s": 0, "manifest": "objects.yaml"})
    await kube.patch(NAMESPACE, NS, {"metadata": {"labels": OPEN}})
    async with make_ground(tmp_path, kube, target="kubeconfig") as ground:
        ground = replace(ground, manifest=lambda name: objects)
        if refused is None:
            assert await picked(ground, fault)
        else:
            with pytest.raises(GuardRefused, match=refused):
                await picked(ground, fault)


async def test_in_a_cluster_of_others_a_node_pool_opts_in(kube: LocalKube, tmp_path: Path) -> None:
    fault = CapacityRefused.model_validate({"after_s": 0, "pool": "spot", "hold_s": 60})
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template = {"spec": {"requirements": [], "nodeClassRef": reference}}
    await kube.create(NODE_POOL, {"metadata": {"name": "spot"}, "spec": {"template": template}})
    async with make_ground(tmp_path, kube, target="kubeconfig") as ground:
        with pytest.raises(GuardRefused, match="NodePool spot did not opt in"):
            await check_pools("capacity_refused-1", fault, ("spot",), ground, {})
        await kube.patch(NODE_POOL, "spot", {"metadata": {"labels": OPEN}})
        await check_pools("capacity_refused-1", fault, ("spot",), ground, {})
