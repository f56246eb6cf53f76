"""A cluster of others, as somebody knows it who has a kubeconfig, a context, a URL and the role that is printed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from harness.errors import ExitCode
from harness.faults.cluster_journal import KEPT_LABEL
from harness.faults.guards import OPT_IN_LABEL, OPT_IN_VALUE
from harness.faults.permissions import Need
from harness.kube.http import HttpKube, current_context
from harness.kube.port import CONFIG_MAP, DEPLOYMENT, LEASE, NAMESPACE, NODE, Json, Resource
from harness.run.allowing import missing
from harness.targets.base import Connection

EXPERIMENT = Path(__file__).parent / "foreign" / "llm-loses-pods.yaml"
NS = "inference"
_RBAC = "rbac.authorization.k8s.io"
_PLURAL = {
    "ServiceAccount": ("", "serviceaccounts", True), "Role": (_RBAC, "roles", True),
    "RoleBinding": (_RBAC, "rolebindings", True), "ClusterRole": (_RBAC, "clusterroles", False),
    "ClusterRoleBinding": (_RBAC, "clusterrolebindings", False),
}  # fmt: skip
RUN_WITHIN_S = 300
HELD = ("faults_observed", "change_undone", "run_complete", "requests_accounted", "recorder_complete")


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

    @property
    def context(self) -> str:
        return current_context(self.connection.kubeconfig)

    def flags(self, kubeconfig: Path, context: str = "") -> list[str]:
        url = self.connection.service_url
        named = ["--kubeconfig", str(kubeconfig), "--context", context or self.context]
        return ["--target", "kubeconfig", *named, "--url", url]

    def run_with(self, account: Path, reports: Path) -> list[str]:
        """A whole run with this account's rights: what about it is not as it must be."""
        command = [sys.executable, "-m", "harness.cli", "run", str(EXPERIMENT), *self.flags(account), "--yes"]
        done = subprocess.run(
            [*command, "--reports", str(reports), "--plain"], capture_output=True, text=True, timeout=RUN_WITHIN_S,
            check=False,
        )  # fmt: skip
        (reports / "said.txt").write_text(done.stdout + done.stderr)
        if len(found := list(reports.rglob("verdict.json"))) != 1:
            return [f"exit {done.returncode}, and no verdict: {done.stdout}{done.stderr}"]
        verdict = json.loads(found[0].read_text())
        status = {finding["check"]: finding["status"] for finding in verdict["findings"]}
        run = json.loads((found[0].parent / "history" / "run.json").read_text())
        wrong = [] if verdict["status"] == "pass" else [f"{verdict['status']}: {verdict['sentence']}"]
        wrong += [f"exit {done.returncode}"] if done.returncode != ExitCode.PASS and not wrong else []
        wrong += [f"{check}: {status.get(check)}" for check in HELD if status.get(check) != "pass"]
        if (run["target"], run["time_scale"], run["emulated"]) != ("kubeconfig", 1.0, []):
            wrong.append(f"it calls itself {run['target']} at {run['time_scale']}, emulated {run['emulated']}")
        if not run["versions"]["kube-apiserver"].startswith("v1.37") or set(run["fidelity"].values()) != {"native"}:
            wrong.append(f"{run['versions']}, {run['fidelity']}")
        wrong += [f"left: {name}" for name in self.runner.run(self.left())]
        return [*wrong, _said(found[0].parent)] if wrong else []

    async def left(self) -> list[str]:
        """What of the harness is still in the cluster."""
        async with HttpKube(self.connection.kubeconfig) as admin:
            leases = (await admin.list(LEASE, NS)).items
            journals = (await admin.list(CONFIG_MAP, NS, label_selector=KEPT_LABEL)).items
            image = (await admin.get(DEPLOYMENT, "llm", NS))["spec"]["template"]["spec"]["containers"][0]["image"]
            cordoned = [n for n in (await admin.list(NODE)).items if n["spec"].get("unschedulable")]
        bad = [image] if image != "vllm/vllm-openai:v0.32.0" else []
        return [obj["metadata"]["name"] for obj in (*leases, *journals, *cordoned)] + bad

    async def opt_in(self) -> None:
        """The workload's namespace, and all nodes."""
        labels = {"metadata": {"labels": {OPT_IN_LABEL: OPT_IN_VALUE}}}
        async with HttpKube(self.connection.kubeconfig) as admin:
            await admin.patch(NAMESPACE, NS, labels)
            for node in (await admin.list(NODE)).items:
                await admin.patch(NODE, node["metadata"]["name"], labels)


def _said(run_dir: Path) -> str:
    """What load, chaos and faults went through, for the folder is gone when somebody reads of the failure."""
    told = [run_dir / "logs" / "chaos.log", run_dir / "logs" / "locust.log", run_dir / "history" / "faults.jsonl"]
    return "\n".join(f"{file.name}:\n{file.read_text()[-4000:]}" for file in told if file.exists())
