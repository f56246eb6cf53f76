from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from faults_ground import add_namespace, inject, make_ground, make_kube, make_log, stages

from fakes.kube.local import LocalKube
from harness.errors import TargetError
from harness.faults.catalogue.apply_objects import ApplyObjects
from harness.faults.heal import heal_pending
from harness.faults.life import run_fault
from harness.faults.objects import RUN_LABEL, run_label
from harness.faults.scene import Scene
from harness.kube.port import CONFIG_MAP, Json, NotFound

ID = "apply_objects-1"


def config_map(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "inference"}}


FAULT = ApplyObjects(after_s=0, manifest="m.yaml")
OBJECTS = ((CONFIG_MAP, config_map("a")), (CONFIG_MAP, config_map("b")))
NAMES = ("ConfigMap/inference/a", "ConfigMap/inference/b")


@pytest.fixture
async def kube() -> LocalKube:
    kube = make_kube()
    await add_namespace(kube, "inference")
    return kube


async def names(kube: LocalKube) -> list[str]:
    return [obj["metadata"]["name"] for obj in (await kube.list(CONFIG_MAP, "inference")).items]


async def test_objects_arrive_labelled_and_go_with_the_heal(kube: LocalKube, tmp_path: Path) -> None:
    async with make_ground(tmp_path, kube, objects=OBJECTS) as ground:
        targets = FAULT.pick(Scene(objects={"m.yaml": NAMES}), Random(1))
        result = await run_fault(FAULT, ID, targets, ground, make_log(ground))
        made = await kube.get(CONFIG_MAP, "a", "inference")
        assert made["metadata"]["labels"][RUN_LABEL] == run_label(tmp_path)
        assert (targets, result.observed) == (NAMES, "; ".join(f"the API serves {name}" for name in NAMES))
        assert await heal_pending(ground, make_log(ground)) == await heal_pending(ground, make_log(ground))
    assert [n for n in await names(kube) if n in "ab"] == []
    assert stages(tmp_path) == ["planned", "injected", "observed", "healing", "healed"]
    assert "labels" not in OBJECTS[0][1]["metadata"]


async def test_an_object_that_was_there_before_is_neither_changed_nor_deleted(kube: LocalKube, tmp_path: Path) -> None:
    before = await kube.create(CONFIG_MAP, config_map("b"))
    async with make_ground(tmp_path, kube, objects=OBJECTS) as ground:
        with pytest.raises(TargetError, match="ConfigMap/inference/b exists already"):
            await run_fault(FAULT, ID, NAMES, ground, make_log(ground))
        report = await heal_pending(ground, None)
    assert report.clean and "1 of 2 objects deleted" in report.undone[0]
    assert await kube.get(CONFIG_MAP, "b", "inference") == before
    with pytest.raises(NotFound):
        await kube.get(CONFIG_MAP, "a", "inference")


async def test_a_name_that_passed_to_somebody_elses_object_is_left_alone(kube: LocalKube, tmp_path: Path) -> None:
    async with make_ground(tmp_path, kube, objects=OBJECTS) as ground:
        await inject(FAULT, ground, ID, NAMES)
        await kube.delete(CONFIG_MAP, "a", "inference")
        theirs = await kube.create(CONFIG_MAP, config_map("a"))
        assert (await heal_pending(ground, None)).clean
    assert await kube.get(CONFIG_MAP, "a", "inference") == theirs


async def test_a_deletion_counts_as_undone_only_once_the_object_is_gone(kube: LocalKube, tmp_path: Path) -> None:
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    async with make_ground(tmp_path, kube, slack_s=0.1, objects=((CONFIG_MAP, held),)) as ground:
        await inject(FAULT, ground, ID, ("ConfigMap/inference/held",))
        report = await heal_pending(ground, None)
        assert not report.clean and report.undone == ()
        assert "ConfigMap/inference/held waits for its finalizers example.com/hold" in report.errors[0]
        assert "kubectl delete configmap held -n inference" in report.left[0]
        await kube.patch(CONFIG_MAP, "held", {"metadata": {"finalizers": None}}, "inference")
        assert (await heal_pending(ground, None)).clean


def test_the_label_is_valid_and_tells_runs_apart(tmp_path: Path) -> None:
    odd = run_label(tmp_path / "-2026-01-01T00:00:00Z with a very long name indeed, longer than labels may be")
    assert odd != run_label(tmp_path / "other") and len(odd) <= 63
    assert all(c.isalnum() or c in "-._" for c in odd) and odd[0].isalnum()
