"""A fault does with its cluster what it says that it needs, and nothing else; heal included."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from harness.errors import GuardRefused
from harness.faults.fault import Fault, Variant
from harness.faults.permissions import Need, access_reviews, needs_of_a_run, rbac_objects
from harness.faults.registry import FAULTS
from harness.kube.port import DEPLOYMENT, LEASE, NODE, POD, ForwardingKube, Json, Kube, Resource, api_error
from harness.run.allowing import check_allowed, rbac_text
from harness.run.record.recorder import RECORDED
from harness.run.virtual.rehearsal import rehearse
from harness.spec.experiment import load_experiment

ROOT = Path(__file__).resolve().parents[3]
NS = "inference"


class AsUser(ForwardingKube):
    """A ``Kube`` that refuses what is not among the needs, as RBAC does."""

    def __init__(self, kube: Kube, needs: Sequence[Need]) -> None:
        super().__init__(kube)
        self._needs = needs

    async def enter(
        self, verb: str, resource: Resource, namespace: str | None, name: str = "", subresource: str = ""
    ) -> None:
        for need in self._needs:
            if (
                (need.resource.group, need.resource.plural) == (resource.group, resource.plural)
                and verb in need.verbs
                and need.subresource in (subresource, "*")
                and need.namespace in (None, namespace)
                and need.name in ("", name)
            ):
                return
        where = f" in {namespace}" if namespace else ""
        raise api_error(403, {"code": 403, "reason": "Forbidden", "message": f"{verb} {resource.plural}{where}"})


def writing() -> list[tuple[type[Fault], Variant]]:
    """The first variant of each fault that needs anything of its own."""
    found = []
    for fault in FAULTS.values():
        for variant in fault.variants:
            if fault.model_validate({"after_s": 0, **variant.arguments}).needs(NS):
                found.append((fault, variant))
                break
    return found


def test_some_faults_write() -> None:
    assert {fault.name for fault, _ in writing()} >= {"pod_loss", "node_deleted", "rolling_restart", "bad_image"}


@pytest.mark.parametrize(("fault", "variant"), writing(), ids=lambda v: v.name)
def test_with_exactly_its_permissions_it_is_seen_and_without_its_own_it_is_refused(
    fault: type[Fault], variant: Variant
) -> None:
    workload = ROOT / "experiments" / "manifests" / "llm.yaml"
    own = fault.model_validate({"after_s": 0, **variant.arguments}).needs(NS)
    every = needs_of_a_run(RECORDED, NS)
    with_all = rehearse(fault, variant, workload, as_user=lambda kube: AsUser(kube, (*every, *own)))
    assert with_all.observed, with_all.said
    assert "Forbidden" not in with_all.said
    without = rehearse(fault, variant, workload, as_user=lambda kube: AsUser(kube, every))
    assert not without.observed and "Forbidden" in without.said, without.said


def test_roles_hold_what_is_needed_and_no_more() -> None:
    needs = [
        Need(POD, ("list", "get")), Need(POD, ("create",), "eviction", NS), Need(LEASE, ("get",), namespace=NS),
        Need(DEPLOYMENT, ("patch",), namespace="other"), Need(NODE, ("get",), name="a"), Need(NODE, ("delete",)),
    ]  # fmt: skip
    objects = rbac_objects(needs, NS)
    assert [(o["kind"], o["metadata"].get("namespace")) for o in objects] == [
        ("ServiceAccount", NS), ("ClusterRole", None), ("ClusterRoleBinding", None), ("Role", NS), ("RoleBinding", NS),
        ("Role", "other"), ("RoleBinding", "other"),
    ]  # fmt: skip
    cluster = objects[1]["rules"]
    assert {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"], "resourceNames": ["a"]} in cluster
    assert {"apiGroups": [""], "resources": ["nodes"], "verbs": ["delete"]} in cluster
    assert {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]} in cluster
    assert {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]} in objects[3]["rules"]
    assert all(binding["subjects"][0]["namespace"] == NS for binding in objects if "subjects" in binding)
    verbs = [verb for _, verb, _ in access_reviews(needs)]
    assert len(verbs) == sum(len(need.verbs) for need in needs)


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_experiment_has_its_roles(path: Path) -> None:
    objects = list(yaml.safe_load_all(rbac_text(path)))
    assert {o["kind"] for o in objects} >= {"ServiceAccount", "ClusterRole", "Role"}
    assert not any("*" in rule["verbs"] for o in objects for rule in o.get("rules", ()))


class Reviewer:
    """Allows everything but one verb on one resource."""

    def __init__(self, verb: str, plural: str) -> None:
        self._refused = (verb, plural)

    async def review_access(self, review: Json) -> Json:
        asked = review["spec"]["resourceAttributes"]
        return {"status": {"allowed": (asked["verb"], asked["resource"]) != self._refused}}


async def test_a_run_that_may_not_do_all_it_needs_is_refused_before_it_begins() -> None:
    experiment = load_experiment(ROOT / "experiments" / "interruption-during-rollout.yaml")
    await check_allowed(Reviewer("no such", "thing"), experiment)
    with pytest.raises(GuardRefused, match="may not patch deployments in inference") as refused:
        await check_allowed(Reviewer("patch", "deployments"), experiment)
    assert "gpu-harness rbac" in (refused.value.hint or "")
    with pytest.raises(GuardRefused, match="may not delete configmaps in inference"):
        await check_allowed(Reviewer("delete", "configmaps"), experiment)
