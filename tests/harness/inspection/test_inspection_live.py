"""What was planted into manifests is found in a cluster that serves them, and nothing of it is changed by looking."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
import yaml
from aiohttp import web

from fakes.clock import WallClock
from fakes.kube import Store, make_app
from harness.inspection.accepting import Accepts
from harness.inspection.cluster import read_live
from harness.inspection.inspecting import Inspection, look
from harness.inspection.objects import Known
from harness.kube.http import HttpKube
from harness.kube.port import DEPLOYMENT, NAMESPACE
from harness.targets.embedded import kubeconfig_text
from harness.targets.manifests import BY_KIND

PLANTED = Path(__file__).parent / "planted"
REFUSED_OR_DROPPED = {"unknown-field", "value-of-wrong-type", "gpu-request-and-limit-differ", "pdb-says-both"}
"""A server does not have these any more, or never took them."""
ONLY_WRITTEN = {"replicas-beside-autoscaler"}
"""In a cluster it is the writer that counts."""


def planted() -> dict[str, list[dict[str, object]]]:
    """By rule: those whose kinds the embedded API serves."""
    found = {}
    for file in sorted(PLANTED.iterdir()):
        objects = [o for o in yaml.safe_load_all(file.read_text()) if o]
        served = all((o["apiVersion"], o["kind"]) in BY_KIND for o in objects)
        alone = all(o["kind"] not in ("NodePool", "NodeClaim") for o in objects)  # they are everybody's
        if served and alone and file.stem not in REFUSED_OR_DROPPED | ONLY_WRITTEN:
            found[file.stem] = objects
    return found


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    runner = web.AppRunner(make_app(Store(WallClock(datetime.now(UTC)), Random(1), window=500), bookmark_s=60))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig_text(f"http://127.0.0.1:{runner.addresses[0][1]}"))
    yield path
    await runner.cleanup()


async def inspected(kubeconfig: Path, namespace: str | None = None) -> Inspection:
    objects, notes = await read_live(kubeconfig, None, namespace, Known())
    return look(objects, Accepts(), "a cluster", notes)


async def bring(kube: HttpKube, namespace: str, objects: list[dict[str, object]]) -> None:
    await kube.create(NAMESPACE, {"metadata": {"name": namespace}})
    for obj in objects:
        resource = BY_KIND[str(obj["apiVersion"]), str(obj["kind"])]
        metadata = dict(obj["metadata"]) | {"namespace": namespace}  # type: ignore[call-overload]  # it is a mapping
        await kube.create(resource, obj | {"metadata": metadata}, namespace)


async def test_what_was_planted_is_found_in_the_cluster_that_serves_it(kubeconfig: Path) -> None:
    wanted = planted()
    assert len(wanted) >= 18
    async with HttpKube(kubeconfig) as kube:
        for rule, objects in wanted.items():
            await bring(kube, rule, objects)
        before = [d["metadata"]["resourceVersion"] for d in (await kube.list(DEPLOYMENT)).items]
        found = await inspected(kubeconfig)
        after = [d["metadata"]["resourceVersion"] for d in (await kube.list(DEPLOYMENT)).items]
    by_namespace: dict[str, set[str]] = {rule: set() for rule in wanted}
    for finding in found.open:
        by_namespace[finding.sighting.object.namespace].add(finding.rule.id)
    assert by_namespace == {rule: {rule} for rule in wanted}
    assert (found.objects.blind, found.notes, after) == (frozenset(), (), before)


async def test_one_namespace_alone_can_be_looked_at(kubeconfig: Path) -> None:
    wanted = planted()
    async with HttpKube(kubeconfig) as kube:
        for rule in ("no-prestop", "no-readiness-probe"):
            await bring(kube, rule, wanted[rule])
    found = await inspected(kubeconfig, "no-prestop")
    assert [finding.rule.id for finding in found.open] == ["no-prestop"]


async def test_who_wrote_the_replicas_beside_the_autoscaler_is_seen(kubeconfig: Path) -> None:
    objects = [o for o in yaml.safe_load_all((PLANTED / "replicas-beside-autoscaler.yaml").read_text()) if o]
    async with HttpKube(kubeconfig) as kube:
        await bring(kube, "apps", objects)
    assert (await inspected(kubeconfig)).open == ()
    async with HttpKube(kubeconfig, field_manager="argocd-controller") as kube:
        await kube.patch(DEPLOYMENT, "llm", {"spec": {"replicas": 3}}, "apps")
    [finding] = (await inspected(kubeconfig)).open
    assert finding.rule.id == "second-writer-of-replicas"
    assert "argocd-controller wrote spec.replicas last" in finding.sighting.saw
