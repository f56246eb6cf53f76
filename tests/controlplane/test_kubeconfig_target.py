"""A run in a cluster that others made: a real control plane, of which it knows a kubeconfig, a context and a URL, and
in which it may do what `gpu-harness rbac` prints, no more."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from foreign_cluster import EXPERIMENT, NS, Foreign

from harness.commands import run_command_line
from harness.errors import BadInput, GuardRefused
from harness.faults.permissions import rbac_objects
from harness.inspection.cluster import rbac, read_cluster
from harness.inspection.objects import Known
from harness.kube.http import HttpKube
from harness.kube.port import DEPLOYMENT, ApiError
from harness.run.allowing import needs_of
from harness.spec.experiment import load_experiment
from harness.stack.find import Binaries
from harness.targets.controlplane.target import ControlPlaneTarget
from harness.targets.wanted import Places, wanted_by


@pytest.fixture(scope="module")
def foreign(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreign]:
    folder = tmp_path_factory.mktemp("foreign")
    target = ControlPlaneTarget(wanted_by(load_experiment(EXPERIMENT), 1), binaries, Places(folder, folder))
    with asyncio.Runner() as runner:
        try:
            yield Foreign(runner, runner.run(target.up()), folder)
        finally:
            runner.run(target.down())


@pytest.fixture(scope="module")
def account(foreign: Foreign) -> Path:
    """What `gpu-harness rbac` prints for the experiment."""
    needs = needs_of(load_experiment(EXPERIMENT))
    return foreign.runner.run(foreign.account(rbac_objects(needs, NS), needs, "gpu-harness"))


def test_what_is_not_open_to_faults_is_left_alone(foreign: Foreign, account: Path) -> None:
    with pytest.raises(GuardRefused, match="namespace inference did not opt in to faults"):
        run_command_line(["run", str(EXPERIMENT), *foreign.flags(account), "--yes"])
    with pytest.raises(BadInput, match=r"current context .* is 'controlplane', and --context says 'staging'"):
        run_command_line(["run", str(EXPERIMENT), *foreign.flags(account, "staging"), "--yes"])


def test_without_yes_it_is_a_dry_run(
    foreign: Foreign, account: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign.runner.run(foreign.opt_in())
    assert run_command_line(["run", str(EXPERIMENT), *foreign.flags(account), "--reports", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "nothing was touched" in out and "NO " not in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif("FOREIGN" not in os.environ, reason="takes minutes: FOREIGN=1 runs it (make test-kubeconfig)")
def test_a_run_with_exactly_its_role_ends_in_a_verdict_and_leaves_nothing(
    foreign: Foreign, account: Path, tmp_path: Path
) -> None:
    foreign.runner.run(foreign.opt_in())
    assert foreign.run_with(account, tmp_path) == []


def test_an_inspection_needs_no_more_than_its_role(foreign: Foreign) -> None:
    objects = rbac(None, NS)
    reader = foreign.runner.run(foreign.account(objects, (), "gpu-harness-inspect"))
    foreign.runner.run(_until_readable(reader))
    found, notes = read_cluster(reader, foreign.context, None, Known())
    assert (found.blind, notes) == (frozenset(), ())
    assert [workload.object.ref for workload in found.gpu_servers] == ["Deployment/inference/llm"]
    with pytest.raises(ApiError, match="forbidden"):
        foreign.runner.run(_write(reader))


def test_what_an_inspection_may_not_read_it_names(foreign: Foreign) -> None:
    nobody = foreign.runner.run(foreign.account(rbac_objects((), NS, "nobody"), (), "nobody"))
    found, notes = read_cluster(nobody, foreign.context, None, Known())
    assert {"PodDisruptionBudget", "HorizontalPodAutoscaler", "Node"} <= found.blind
    assert any("poddisruptionbudgets.policy could not be read" in note for note in notes)


async def _until_readable(kubeconfig: Path) -> None:
    async with HttpKube(kubeconfig) as kube, asyncio.timeout(30):
        while True:
            try:
                await kube.list(DEPLOYMENT)
                return
            except ApiError:
                await asyncio.sleep(0.2)


async def _write(kubeconfig: Path) -> None:
    async with HttpKube(kubeconfig) as kube:
        await kube.patch(DEPLOYMENT, "llm", {"spec": {"replicas": 1}}, NS)
