"""What a kept cluster counts, in the time of another run."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
import yaml
from aiohttp import web
from aiohttp.typedefs import Handler
from docker_on_path import OnPath
from docker_on_path import on_path as on_path

from fakes.clock import WallClock
from fakes.config import PoolConfig, WorldConfig
from fakes.kube import Store, make_app
from harness.kube.http import HttpKube
from harness.kube.port import LEASE, NODE, Json
from harness.targets.kind import retime
from harness.targets.kind.cluster_file import cluster_file, kubelet_times, timed_flags
from harness.targets.kind.commands import KindCommands, find_docker, find_kind
from harness.targets.kind.inventory import NotAsItWas, take
from harness.targets.kind.kept import KeptFolder, Record
from harness.targets.kind.retime import KUBELET_FILE, MANIFESTS, timed_kubelet, timed_manifest, timed_of
from harness.targets.kind.taking_over import take_over

POOL = PoolConfig("on-demand", "on-demand", gpus=2, nodes=1, stock=2)
FAST = WorldConfig(seed=1, time_scale=4.0, pools=(POOL,))
SLOW = WorldConfig(seed=1, time_scale=1.0, pools=(POOL,))
FIRST, WORKERS = "lab-control-plane", ("lab-worker", "lab-worker2")
KUBELET = "kind: KubeletConfiguration\nnodeStatusUpdateFrequency: 2.5s\nrotateCertificates: true\n"
READ_BACK: Json = {
    "nodeStatusUpdateFrequency": "10s", "nodeStatusReportFrequency": "5m0s", "nodeLeaseDurationSeconds": 40,
}  # fmt: skip
"""As a kubelet says it of itself."""


def manifest(program: str) -> str:
    words = [program, "--secure-port=6443", *(f"--{k}={v}" for k, v in timed_flags(4.0)[program].items())]
    return str(yaml.safe_dump({"kind": "Pod", "spec": {"containers": [{"name": program, "command": words}]}}))


@pytest.mark.parametrize("program", ["kube-apiserver", "kube-controller-manager"])
def test_a_static_pod_keeps_all_flags_but_those_of_time(program: str) -> None:
    in_real_time = yaml.safe_load(timed_manifest(manifest(program), 1.0))["spec"]["containers"][0]["command"]
    assert in_real_time == [program, "--secure-port=6443"]
    back = yaml.safe_load(timed_manifest(timed_manifest(manifest(program), 1.0), 4.0))
    assert back == yaml.safe_load(manifest(program))
    assert timed_of(back["spec"]["containers"][0]["command"]) == timed_flags(4.0)[program]


def test_a_kubelet_is_told_the_times_in_real_time_too() -> None:
    found = yaml.safe_load(timed_kubelet(KUBELET, 1.0))
    assert found == {"kind": "KubeletConfiguration", "rotateCertificates": True} | kubelet_times(1.0)


class Cluster:
    """Containers with kubeadm's files on PATH's docker; an API server that knows what kubelets say of themselves."""

    def __init__(self, on_path: OnPath, kube: HttpKube, says: dict[str, Json]) -> None:
        self.on_path, self.kube, self.says = on_path, kube, says
        for node in (FIRST, *WORKERS):
            on_path.file(node, KUBELET_FILE).write_text(KUBELET)
        for program in timed_flags(1.0):
            on_path.file(FIRST, f"{MANIFESTS}/{program}.yaml").write_text(manifest(program))
        on_path.answers("docker inspect --format {{json .State}}", json.dumps({"Running": False, "Paused": False}))
        on_path.answers("docker inspect --format {{json .NetworkSettings.Networks}}", '{"kind": {}}')
        states = f"{FIRST} running\nlab-worker running\nlab-worker2 exited\n"
        on_path.answers("docker ps -a --filter label=io.x-k8s.kind.cluster=lab --format {{.Names}} {{.State}}", states)

    def runs(self, flags: Mapping[str, Mapping[str, str]]) -> None:
        for program, its in flags.items():
            words = " ".join([program, *(f"--{name}={value}" for name, value in its.items())])
            self.on_path.answers(f"docker exec {FIRST} pgrep -a -f ^{program} ", f"77 {words}\n")

    def commands(self) -> KindCommands:
        return KindCommands(find_docker(), find_kind(), "lab", self.on_path.folder / "kubeconfig")

    def text(self, node: str, path: str) -> Json:
        found: Json = yaml.safe_load(self.on_path.file(node, path).read_text())
        return found


@pytest.fixture
async def cluster(on_path: OnPath) -> AsyncIterator[Cluster]:
    says = {node: {"kubeletconfig": READ_BACK} for node in (FIRST, "lab-worker")}

    @web.middleware
    async def configz(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked = re.fullmatch("/api/v1/nodes/([^/]+)/proxy/configz", request.path)
        return web.json_response(says[asked[1]]) if asked else await handler(request)

    app = make_app(Store(WallClock(datetime.now(UTC)), Random(1)))
    app.middlewares.append(configz)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    config: Json = {
        "apiVersion": "v1", "kind": "Config", "current-context": "x", "users": [{"name": "x", "user": {}}],
        "clusters": [{"name": "x", "cluster": {"server": f"http://{host}:{port}"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }  # fmt: skip
    path = on_path.folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    async with HttpKube(path) as kube:
        yield Cluster(on_path, kube, says)
    await runner.cleanup()


async def kept_by(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[KeptFolder, Record]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kept = KeptFolder("lab")
    kept.path.mkdir(parents=True)
    record = Record(cluster_file(FAST, "lab", Path("/mark")), "", "digest", {}, await take(cluster.kube))
    kept.write(record, cluster.on_path.folder / "kubeconfig")
    return kept, record


async def test_a_kept_cluster_is_retimed_in_all_its_nodes_and_shown_to_be(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, record = await kept_by(cluster, tmp_path, monkeypatch)
    await cluster.kube.create(LEASE, {"metadata": {"name": "kube-controller-manager"}}, "kube-system")
    await cluster.kube.create(NODE, {"metadata": {"name": "lab-worker"}})
    cluster.runs(timed_flags(1.0))
    wanted = cluster_file(SLOW, "lab", Path("/mark"))
    await take_over(cluster.commands(), kept, record, SLOW, wanted)
    for node in (FIRST, *WORKERS):
        assert cluster.text(node, KUBELET_FILE)["nodeLeaseDurationSeconds"] == 40
    for program in timed_flags(1.0):
        (container,) = cluster.text(FIRST, f"{MANIFESTS}/{program}.yaml")["spec"]["containers"]
        assert container["command"] == [program, "--secure-port=6443"]
    on_the_first = [call for call in cluster.on_path.calls() if call.startswith(f"docker exec {FIRST}")]
    assert on_the_first[0].endswith("systemctl stop kubelet") and "crictl rmp -f" in on_the_first[1]
    assert on_the_first[2].endswith("systemctl start kubelet")
    assert (await cluster.kube.list(LEASE, "kube-system")).items == ()  # of the controller manager that was killed
    assert (await cluster.kube.list(NODE)).items == ()  # it was reset besides
    now = kept.read()
    assert now is not None and now.is_timed_as(wanted) and not now.between


@pytest.mark.parametrize("wrong", ["a program", "a kubelet"])
async def test_what_cannot_be_shown_to_have_the_time_is_not_taken_by_the_next_run_either(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.setattr(retime, "BACK_S", 0.0)
    kept, record = await kept_by(cluster, tmp_path, monkeypatch)
    cluster.runs(timed_flags(4.0 if wrong == "a program" else 1.0))
    if wrong == "a kubelet":
        cluster.says["lab-worker"] = {"kubeletconfig": READ_BACK | {"nodeLeaseDurationSeconds": 10}}
    with pytest.raises(NotAsItWas, match=r"kube-apiserver runs with|lab-worker has"):
        await take_over(cluster.commands(), kept, record, SLOW, cluster_file(SLOW, "lab", Path("/mark")))
    now = kept.read()
    assert now is not None and now.between
