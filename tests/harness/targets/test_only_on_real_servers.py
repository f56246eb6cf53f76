"""What only a real control plane has: refused where it is missing, taken where it is there, and recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import BadInput
from harness.run.allowing import needs_of
from harness.run.preparing import fitting_target, prepare
from harness.run.record.beside import recorded_beside
from harness.spec.checks import GangSpec
from harness.spec.experiment import Experiment

STACK = Path(__file__).parents[3] / "experiments" / "stack"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("dra-taint-takes-one-pod", "pool 'dra' offers its GPUs by claim"),
        ("gang-in-one-zone", "TopologyAwareWorkloadScheduling: only a real control plane"),
    ],
)
@pytest.mark.parametrize("virtual", [False, True])
def test_the_embedded_target_refuses_it_before_anything_is_started(name: str, says: str, virtual: bool) -> None:
    with pytest.raises(BadInput, match=says) as refused:
        prepare(STACK / f"{name}.yaml", seed=1, target="embedded", cut=None, virtual=virtual)
    assert "--target controlplane" in refused.value.hint


def test_a_kind_of_a_real_server_is_named_by_file_and_line(tmp_path: Path) -> None:
    text = (STACK / "dra-taint-takes-one-pod.yaml").read_text().replace(", dra: true", "")
    for folder in ("load/", "../manifests/", "manifests/"):
        text = text.replace(f" {folder}", f" {(STACK / folder).resolve()}/").replace(
            f"[{folder}", f"[{STACK / folder}/"
        )
    (tmp_path / "experiment.yaml").write_text(text)
    with pytest.raises(BadInput, match=r"DeviceClass of .* is no kind that the embedded API has") as why:
        prepare(tmp_path / "experiment.yaml", seed=1, target="embedded", cut=None)
    assert why.value.where is not None and str(why.value.where).endswith("gpus-by-claim.yaml:3 (kind)")


def test_without_a_target_it_is_the_first_that_can_have_it() -> None:
    assert fitting_target(STACK / "dra-taint-takes-one-pod.yaml") == "controlplane"
    assert fitting_target(STACK / "gangs-compete.yaml") == "embedded"


def experiment(name: str) -> Experiment:
    return prepare(STACK / f"{name}.yaml", seed=1, target="controlplane", cut=None).experiment


def test_the_kinds_of_the_systems_it_brings_objects_of_are_recorded() -> None:
    claims = recorded_beside(experiment("dra-taint-takes-one-pod"))
    assert {r.kind for r in claims} == {
        "DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice",
    }  # fmt: skip
    gangs = recorded_beside(experiment("gangs-compete"))
    assert gangs == ()


@pytest.mark.parametrize(
    ("of", "group"),
    [("kai", "scheduling.run.ai"), ("volcano", "scheduling.volcano.sh"), ("coscheduling", "scheduling.x-k8s.io")],
)
def test_pod_groups_of_another_scheduler_are_recorded_and_asked_for_where_the_check_names_it(
    of: str, group: str
) -> None:
    plain = experiment("gangs-compete")
    checks = tuple(replace_of(check, of) if isinstance(check, GangSpec) else check for check in plain.settings.checks)
    named = replace(plain, settings=replace(plain.settings, checks=checks))
    (found,) = recorded_beside(named)
    assert (found.group, found.kind) == (group, "PodGroup")
    asked, usual = ({(n.resource.group, n.plural) for n in needs_of(each)} for each in (named, plain))
    assert (group, "podgroups") in asked - usual


def replace_of(check: GangSpec, of: str) -> GangSpec:
    return GangSpec.model_validate(check.model_dump() | {"of": of})
