"""A run in a cluster that others made: a real control plane, of which it knows a kubeconfig, a context and a URL, and
in which it may do what `gpu-harness rbac` prints, no more."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from harness.commands import run_command_line
from harness.errors import BadInput, ExitCode, GuardRefused
from harness.faults.cluster_journal import KEPT_LABEL
from harness.faults.guards import OPT_IN_LABEL, OPT_IN_VALUE
from harness.faults.permissions import Need, rbac_objects
from harness.inspection.cluster import rbac, read_cluster
from harness.inspection.objects import Known
from harness.kube.http import HttpKube
from harness.kube.port import CONFIG_MAP, DEPLOYMENT, LEASE, NAMESPACE, NODE, ApiError, Json, Resource
from harness.run.allowing import missing, needs_of
from harness.spec.experiment import load_experiment
from harness.stack.find import Binaries
from harness.targets.base import Connection
from harness.targets.controlplane.target import ControlPlaneTarget
from harness.targets.wanted import Places, wanted_by

HERE = Path(__file__).parent / "foreign"
EXPERIMENT = HERE / "llm-loses-pods.yaml"
NS, CONTEXT = "inference", "controlplane"
_RBAC = "rbac.authorization.k8s.io"
_PLURAL = {
    "ServiceAccount": ("", "serviceaccounts", True), "Role": (_RBAC, "roles", True),
    "RoleBinding": (_RBAC, "rolebindings", True), "ClusterRole": (_RBAC, "clusterroles", False),
    "ClusterRoleBinding": (_RBAC, "clusterrolebindings", False),
}  # fmt: skip
RUN_WITHIN_S = 300


@dataclass(frozen=True)
class Foreign:
    """A cluster, its administrator's connection, and the folder in which accounts get their kubeconfigs."""

    runner: asyncio.Runner
    connection: Connection
    folder: Path

    async def account(self, objects: Sequence[Json], needs: Sequence[Need], name: str) -> Path:
        """A kubeconfig of a service account with exactly these permissions, as soon as they hold."""
        path = self.folder / f"{name}.kubeconfig"
        async with HttpKube(self.connection.kubeconfig) as admin:
            for obj in objects:
                group, plural, namespaced = _PLURAL[obj["kind"]]
                await admin.create(Resource(group, "v1", plural, obj["kind"], namespaced), obj)
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {}, "spec": {}}
            token_of = Resource("", "v1", f"serviceaccounts/{name}/token", "TokenRequest", True)
            token = (await admin.create(token_of, request, NS))["status"]["token"]
        raw = yaml.safe_load(self.connection.kubeconfig.read_text())
        raw["users"] = [{"name": user["name"], "user": {"token": token}} for user in raw["users"]]
        path.write_text(yaml.safe_dump(raw))
        async with HttpKube(path) as kube, asyncio.timeout(30):
            while await missing(kube, needs):  # the authorizer reads roles by a watch
                await asyncio.sleep(0.2)
        return path

    async def opt_in(self) -> None:
        """The workload's namespace, and all nodes."""
        labels = {"metadata": {"labels": {OPT_IN_LABEL: OPT_IN_VALUE}}}
        async with HttpKube(self.connection.kubeconfig) as admin:
            await admin.patch(NAMESPACE, NS, labels)
            for node in (await admin.list(NODE)).items:
                await admin.patch(NODE, node["metadata"]["name"], labels)


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


def flags(foreign: Foreign, kubeconfig: Path, context: str = CONTEXT) -> list[str]:
    url = foreign.connection.service_url
    return ["--target", "kubeconfig", "--kubeconfig", str(kubeconfig), "--context", context, "--url", url]


def test_what_is_not_open_to_faults_is_left_alone(foreign: Foreign, account: Path) -> None:
    with pytest.raises(GuardRefused, match="namespace inference did not opt in to faults"):
        run_command_line(["run", str(EXPERIMENT), *flags(foreign, account), "--yes"])
    with pytest.raises(BadInput, match=r"current context .* is 'controlplane', and --context says 'staging'"):
        run_command_line(["run", str(EXPERIMENT), *flags(foreign, account, "staging"), "--yes"])


def test_without_yes_it_is_a_dry_run(
    foreign: Foreign, account: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign.runner.run(foreign.opt_in())
    assert run_command_line(["run", str(EXPERIMENT), *flags(foreign, account), "--reports", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "nothing was touched" in out and "NO " not in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif("FOREIGN" not in os.environ, reason="takes minutes: FOREIGN=1 runs it (make test-kubeconfig)")
def test_a_run_with_exactly_its_role_ends_in_a_verdict_and_leaves_nothing(
    foreign: Foreign, account: Path, tmp_path: Path
) -> None:
    foreign.runner.run(foreign.opt_in())
    command = [sys.executable, "-m", "harness.cli", "run", str(EXPERIMENT), *flags(foreign, account), "--yes"]
    done = subprocess.run(
        [*command, "--reports", str(tmp_path), "--plain"], capture_output=True, text=True, timeout=RUN_WITHIN_S,
        check=False,
    )  # fmt: skip
    [verdict_file] = tmp_path.rglob("verdict.json")
    verdict = json.loads(verdict_file.read_text())
    status = {finding["check"]: finding["status"] for finding in verdict["findings"]}
    # A machine that stands still makes runs unknown, which is right, and none of this test's business.
    assert done.returncode in (ExitCode.PASS, ExitCode.UNKNOWN), done.stdout + done.stderr
    held = ("faults_observed", "change_undone", "run_complete", "requests_accounted", "recorder_complete")
    assert {check: status[check] for check in held} == dict.fromkeys(held, "pass"), done.stdout
    assert "fail" not in status.values()
    run = json.loads((verdict_file.parent / "history" / "run.json").read_text())
    assert (run["target"], run["time_scale"], run["emulated"]) == ("kubeconfig", 1.0, [])
    assert run["versions"]["kube-apiserver"].startswith("v1.37")
    assert set(run["fidelity"].values()) == {"native"}
    assert foreign.runner.run(_left(foreign)) == []


async def _left(foreign: Foreign) -> list[str]:
    """What of the harness is still in the cluster."""
    async with HttpKube(foreign.connection.kubeconfig) as admin:
        leases = (await admin.list(LEASE, NS)).items
        journals = (await admin.list(CONFIG_MAP, NS, label_selector=KEPT_LABEL)).items
        image = (await admin.get(DEPLOYMENT, "llm", NS))["spec"]["template"]["spec"]["containers"][0]["image"]
        cordoned = [n for n in (await admin.list(NODE)).items if n["spec"].get("unschedulable")]
    bad = [image] if image != "vllm/vllm-openai:v0.32.0" else []
    return [obj["metadata"]["name"] for obj in (*leases, *journals, *cordoned)] + bad


def test_an_inspection_needs_no_more_than_its_role(foreign: Foreign) -> None:
    objects = rbac(None, NS)
    reader = foreign.runner.run(foreign.account(objects, (), "gpu-harness-inspect"))
    foreign.runner.run(_until_readable(reader))
    found, notes = read_cluster(reader, CONTEXT, None, Known())
    assert (found.blind, notes) == (frozenset(), ())
    assert [workload.object.ref for workload in found.gpu_servers] == ["Deployment/inference/llm"]
    with pytest.raises(ApiError, match="forbidden"):
        foreign.runner.run(_write(reader))


def test_what_an_inspection_may_not_read_it_names(foreign: Foreign) -> None:
    nobody = foreign.runner.run(foreign.account(rbac_objects((), NS, "nobody"), (), "nobody"))
    found, notes = read_cluster(nobody, CONTEXT, None, Known())
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
