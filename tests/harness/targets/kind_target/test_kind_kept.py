"""A kept cluster: what is shown to be as it was is taken, everything else is made anew."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random
from typing import cast

import pytest
import yaml
from aiohttp import web
from docker_on_path import OnPath
from docker_on_path import on_path as on_path

from fakes.clock import WallClock
from fakes.config import PlantedBug, PoolConfig, WorldConfig
from fakes.kube import LocalKube, Store, make_app
from harness.errors import BadInput, TargetError
from harness.kube.http import HttpKube
from harness.kube.port import CONFIG_MAP, NODE, NODE_POOL, POD, PRIORITY_CLASS, Json
from harness.processes.parent import PARENT_FD_ENV
from harness.targets.kind import inventory, keeper
from harness.targets.kind.cluster_file import cluster_file
from harness.targets.kind.commands import KindCommands, find_docker, find_kind
from harness.targets.kind.inventory import ApiServer, Inventory, NotAsItWas, return_to, settled, take
from harness.targets.kind.keeper import keep
from harness.targets.kind.kept import CLUSTER_ENV, KEEP_ENV, KeptFolder, Record, delete_kept
from harness.targets.kind.objects import IMAGE
from harness.targets.kind.reset import reset
from harness.targets.kind.target import KindTarget
from harness.targets.wanted import Places, Wanted

ON_DEMAND = PoolConfig("on-demand", "on-demand", gpus=2, nodes=1, stock=2)
SPOT = PoolConfig("spot", "spot", gpus=2, nodes=1, stock=1)
WHOLE = WorldConfig(seed=1, time_scale=4.0, pools=(ON_DEMAND, SPOT))
IDS = {"lab-control-plane": "c0", "lab-worker": "c1", "lab-worker2": "c2", "lab-worker3": "c3"}


@pytest.fixture
async def kube(tmp_path: Path) -> AsyncIterator[HttpKube]:
    store = Store(WallClock(datetime.now(UTC)), Random(1))
    runner = web.AppRunner(make_app(store), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    named = {"clusters": [{"name": "x", "cluster": {"server": f"http://{host}:{port}"}}]}
    users: Json = {
        "users": [{"name": "x", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "x", **named, **users}))
    await LocalKube(store, "beginning").create(
        CONFIG_MAP, {"metadata": {"name": "root"}, "data": {"a": "1"}}, "default"
    )
    async with HttpKube(path) as opened:
        yield opened
    await runner.cleanup()


async def test_what_came_since_is_deleted_whoever_had_a_say_in_it(kube: HttpKube) -> None:
    earlier = await take(kube)
    held: Json = {"name": "pool", "finalizers": ["karpenter.sh/termination"]}
    await kube.create(CONFIG_MAP, {"metadata": {"name": "more"}}, "default")
    await kube.create(PRIORITY_CLASS, {"metadata": {"name": "urgent"}, "value": 10})
    await kube.create(NODE_POOL, {"metadata": held, "spec": {"template": {"spec": {}}}})
    await return_to(kube, earlier, 5.0)
    assert await take(kube) == earlier
    assert [obj["metadata"]["name"] for obj in (await kube.list(NODE_POOL)).items] == []


async def test_what_has_an_owner_goes_with_it_and_is_not_told_by_its_name(kube: HttpKube) -> None:
    owner = await kube.get(CONFIG_MAP, "root", "default")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "root", "uid": owner["metadata"]["uid"]}
    earlier = await take(kube)
    meta: Json = {"name": "owned", "ownerReferences": [reference]}
    await kube.create(CONFIG_MAP, {"metadata": meta}, "default")
    await return_to(kube, earlier, 5.0)
    assert await kube.get(CONFIG_MAP, "owned", "default")


@pytest.mark.parametrize("deed", ["changed", "deleted"])
async def test_what_was_there_and_is_another_now_is_no_beginning(kube: HttpKube, deed: str) -> None:
    earlier = await take(kube)
    if deed == "changed":
        await kube.patch(CONFIG_MAP, "root", {"data": {"a": "2"}}, "default")
    else:
        await kube.delete(CONFIG_MAP, "root", "default")
    with pytest.raises(NotAsItWas, match=r"gone or another: ConfigMap\.core default/root"):
        await return_to(kube, earlier, 5.0)


@pytest.mark.looptime
@pytest.mark.parametrize(("looks_s", "what"), [(0.0, "Lease.a default/x"), (9.0, "it was looked at once")])
async def test_a_cluster_that_does_not_come_to_rest_is_told(
    monkeypatch: pytest.MonkeyPatch, looks_s: float, what: str
) -> None:
    looks = count()

    async def restless(kube: ApiServer) -> Inventory:
        await asyncio.sleep(looks_s)
        return {"ConfigMap.core default/root": "1", "Lease.a default/x": str(next(looks))}

    monkeypatch.setattr(inventory, "take", restless)
    with pytest.raises(TargetError, match=f"did not come to rest within 5 s: {what}$"):
        await settled(cast(ApiServer, None), 1.0, 5.0)


def commands(on_path: OnPath) -> KindCommands:
    return KindCommands(find_docker(), find_kind(), "lab", on_path.folder / "kubeconfig")


async def node(kube: HttpKube, name: str) -> None:
    await kube.create(NODE, {"metadata": {"name": name, "finalizers": ["karpenter.sh/termination"]}})


def containers(on_path: OnPath, states: dict[str, str]) -> None:
    said = "".join(f"{name} {state}\n" for name, state in states.items())
    on_path.answers("docker ps -a --filter label=io.x-k8s.kind.cluster=lab --format {{.Names}} {{.State}}", said)
    on_path.answers("docker inspect --format {{json .State}}", json.dumps({"Running": True, "Paused": True}))
    on_path.answers("docker inspect --format {{json .NetworkSettings.Networks}}", "{}")


async def test_a_reset_takes_all_workers_power_and_boots_those_of_the_beginning(
    on_path: OnPath, kube: HttpKube
) -> None:
    earlier = await take(kube)
    await node(kube, "lab-worker")
    await kube.create(
        POD, {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, "default"
    )
    containers(on_path, {"lab-control-plane": "running", "lab-worker": "running", "lab-worker2": "exited"})
    await reset(commands(on_path), kube, ["lab-worker", "lab-worker2"], ["lab-worker"], earlier)
    assert (await kube.list(NODE)).items == () and (await kube.list(POD)).items == ()
    done = on_path.calls(but=("inspect", "ps"))
    for name in ("lab-worker", "lab-worker2"):
        mine = [call for call in done if call.split()[-1].partition(":")[0] == name]
        assert mine[:4] == [
            f"docker unpause {name}",
            f"docker kill {name}",
            f"docker network connect kind {name}",
            f"docker cp - {name}:/var/lib",
        ]
        boots = ["docker cp - lab-worker:/etc/cni", "docker start lab-worker"]
        assert mine[4:] == (boots if name == "lab-worker" else [])


async def test_workers_that_run_though_they_are_stock_are_no_beginning(on_path: OnPath, kube: HttpKube) -> None:
    containers(on_path, {"lab-control-plane": "running", "lab-worker": "running", "lab-worker2": "running"})
    with pytest.raises(NotAsItWas, match="of its workers run lab-worker, lab-worker2, not lab-worker"):
        await reset(commands(on_path), kube, ["lab-worker", "lab-worker2"], ["lab-worker"], await take(kube))


def file(config: WorldConfig) -> str:
    return cluster_file(config, "lab", Path("/mark"))


BUG = frozenset({PlantedBug.GANG_BOUND_ONE_BY_ONE})
RECORD = Record(file(WHOLE), "node:1", "digest", IDS, {})


@pytest.mark.parametrize(
    "config",
    [WHOLE, replace(WHOLE, pools=(replace(ON_DEMAND, nodes=2),)), replace(WHOLE, time_scale=1.0)],
    ids=["the same", "two of the three workers, both on", "another time"],
)
def test_a_cluster_with_at_least_the_wanted_workers_will_do_whatever_its_time(config: WorldConfig) -> None:
    RECORD.check(file(config), "node:1", "digest", IDS)


@pytest.mark.parametrize(
    ("config", "image", "loaded", "ids", "why"),
    [
        pytest.param(replace(WHOLE, planted_bugs=BUG), "node:1", "digest", IDS, "planted bug", id="settings"),
        pytest.param(replace(WHOLE, pools=(SPOT, ON_DEMAND)), "node:1", "digest", IDS, "other pools", id="order"),
        pytest.param(
            replace(WHOLE, pools=(ON_DEMAND, replace(SPOT, stock=2))), "node:1", "digest", IDS, "other pools", id="more"
        ),
        pytest.param(WHOLE, "", "digest", IDS, "node image is node:1", id="image"),
        pytest.param(WHOLE, "node:1", "new code", IDS, "image of the fakes", id="code"),
        pytest.param(WHOLE, "node:1", "digest", IDS | {"lab-worker": "c9"}, "containers", id="containers"),
    ],
)
def test_any_other_cluster_will_not_do(
    config: WorldConfig, image: str, loaded: str, ids: dict[str, str], why: str
) -> None:
    with pytest.raises(NotAsItWas, match=why):
        RECORD.check(file(config), image, loaded, ids)


def test_one_that_was_left_between_two_times_will_not_do() -> None:
    with pytest.raises(NotAsItWas, match="a run ended while it was given another time_scale"):
        replace(RECORD, between=True).check(file(WHOLE), "node:1", "digest", IDS)


def test_a_retimed_cluster_has_the_settings_of_the_run_and_all_the_nodes_that_it_had() -> None:
    fewer = file(replace(WHOLE, time_scale=1.0, pools=(ON_DEMAND,)))
    found = replace(RECORD, between=True).retimed(fewer)
    assert not RECORD.is_timed_as(fewer) and found.is_timed_as(fewer)
    assert (found.nodes, found.between) == (RECORD.nodes, False)


def test_two_runs_cannot_have_one_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = KeptFolder("lab")
    first.hold()
    with pytest.raises(TargetError, match="another run is at work on the kind cluster 'lab'"):
        KeptFolder("lab").hold()
    first.release()
    KeptFolder("lab").hold()


def test_down_deletes_what_was_kept_and_its_folder(
    on_path: OnPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(CLUSTER_ENV, "lab")
    assert delete_kept() == ""
    folder = KeptFolder("lab")
    folder.path.mkdir(parents=True)
    (tmp_path / "kubeconfig").write_text("x")
    folder.write(RECORD, tmp_path / "kubeconfig")
    assert folder.read() == RECORD
    on_path.answers("docker ps", "lab-control-plane\n")
    on_path.answers("docker inspect", json.dumps([{"Destination": "/var"}]))
    assert delete_kept() == "deleted the kind cluster lab that was kept"
    assert not folder.path.exists()
    assert on_path.calls(but=("inspect", "ps")) == []  # somebody has made one of that name, which is not ours


@pytest.mark.parametrize("kept", [True, False])
async def test_the_keeper_spares_what_is_kept_by_the_end_of_the_run(
    on_path: OnPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    record = tmp_path / "kept.json"
    if kept:
        record.write_text("{}")
    on_path.answers("docker ps", "lab-control-plane\n")
    on_path.answers("docker inspect", json.dumps([{"Destination": "/gpu-harness"}]))
    ours, theirs = os.pipe()
    monkeypatch.setenv(PARENT_FD_ENV, str(ours))
    os.close(theirs)  # the run has ended
    monkeypatch.setattr(keeper, "QUIET_S", 0.0)
    assert await keep(commands(on_path), record) == (0 if kept else 70)  # this docker says for ever that it is there
    asyncio.get_running_loop().remove_reader(ours)
    os.close(ours)
    deleted = [call for call in on_path.calls() if call.startswith("kind delete")]
    assert len(deleted) == (0 if kept else keeper.TRIES)


@pytest.mark.parametrize("name", ["../x", "..", ".", "/abs", "a/b", "Lab", "-a", "a-", "a b", "a\n", "x" * 50])
def test_a_name_that_is_none_of_a_cluster_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(CLUSTER_ENV, name)
    with pytest.raises(BadInput, match=f"{CLUSTER_ENV} is .* no name for a kind cluster"):
        delete_kept()
    assert not (tmp_path / "cache").exists()


async def test_workers_that_cannot_be_parked_keep_nothing_else_from_its_end(
    on_path: OnPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(KEEP_ENV, "1")
    said: list[str] = []
    target = KindTarget(Wanted(WHOLE, ()), commands(on_path), Places(tmp_path, tmp_path, say=said.append))
    target._kept.hold()
    (tmp_path / "kubeconfig").write_text("x")
    target._kept.write(RECORD, tmp_path / "kubeconfig")
    on_path.answers("docker ps", code=1, err="Cannot connect to the Docker daemon")
    await target.down()
    assert not target._kept.held
    assert len(said) == 1 and "could not be parked" in said[0]


def test_the_workers_have_the_fakes_under_the_names_by_which_they_look_for_model_servers(
    on_path: OnPath, tmp_path: Path
) -> None:
    target = KindTarget(Wanted(WHOLE, images=("vllm", "busybox")), commands(on_path), Places(tmp_path, tmp_path))
    of_workers, _ = target._images().wanted.values()
    assert of_workers.names == (IMAGE, "docker.io/library/vllm:latest")
