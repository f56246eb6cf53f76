from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from docker_on_path import OnPath
from docker_on_path import on_path as on_path

from harness.errors import TargetError
from harness.targets.kind.commands import KindCommands, find_docker, find_kind

SERVER = json.dumps({"Client": {"Version": "28"}, "Server": {"Version": "27.1", "Os": "linux", "Arch": "arm64"}})
OURS = json.dumps([{"Destination": "/gpu-harness"}, {"Destination": "/var"}])


def commands(on_path: OnPath, said: list[str] | None = None) -> KindCommands:
    say = (said if said is not None else []).append
    return KindCommands(find_docker(), find_kind(), "lab", on_path.folder / "kubeconfig", say)


@pytest.mark.parametrize(("program", "find"), [("docker", find_docker), ("kind", find_kind)])
def test_a_program_that_is_missing_is_named_with_where_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, find: object
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert callable(find)
    with pytest.raises(TargetError, match=f"there is no `{program}` on PATH") as raised:
        find()
    assert raised.value.hint is not None and "install" in raised.value.hint


async def test_docker_that_does_not_answer_is_told_in_its_own_words(on_path: OnPath) -> None:
    on_path.answers("docker version", code=1, err="Cannot connect to the Docker daemon at unix:///var/run/docker.sock.")
    with pytest.raises(TargetError, match="Docker does not answer: Cannot connect to the Docker daemon") as raised:
        await commands(on_path).check()
    assert raised.value.hint is not None and "DOCKER_HOST" in raised.value.hint


@pytest.mark.parametrize("version", ["0.20.0", "what?"])
async def test_a_kind_of_another_version_is_refused(on_path: OnPath, version: str) -> None:
    on_path.answers("docker version", SERVER)
    on_path.answers("kind version", version)
    with pytest.raises(TargetError, match="is of version") as raised:
        await commands(on_path).check()
    assert raised.value.hint is not None and "0.31" in raised.value.hint


async def test_versions_are_told_and_what_machine_containers_find(on_path: OnPath) -> None:
    on_path.answers("docker version", SERVER)
    on_path.answers("kind version", "0.33.0\n")
    assert await commands(on_path).check() == ({"kind": "0.33.0", "Docker": "27.1"}, "linux/arm64")


async def test_a_cluster_of_somebody_else_is_never_touched(on_path: OnPath) -> None:
    on_path.answers("docker ps", "lab-control-plane\nlab-worker\n")
    on_path.answers("docker inspect", json.dumps([{"Destination": "/var"}]))
    with pytest.raises(TargetError, match="'lab' that is not ours"):
        await commands(on_path).make_way()
    assert on_path.calls(but=("inspect", "ps")) == []


async def test_what_an_earlier_run_of_ours_left_is_deleted_though_paused(on_path: OnPath) -> None:
    on_path.answers("docker ps", "lab-control-plane\nlab-worker\n")
    on_path.answers("docker inspect", OURS)
    said: list[str] = []
    with pytest.raises(TargetError, match="still there"):  # this docker says so for ever
        await commands(on_path, said).make_way()
    assert said == ["deleting the cluster lab that an earlier run left behind"]
    assert on_path.calls(but=("inspect", "ps")) == [
        "docker unpause lab-control-plane",
        "docker unpause lab-worker",
        f"kind delete cluster --name lab --kubeconfig {on_path.folder / 'kubeconfig'}",
    ]


async def test_half_a_cluster_is_known_by_any_node_of_it(on_path: OnPath) -> None:
    """kind makes its containers at once, and may be killed, or fail, before the control plane's is there."""
    on_path.answers("docker ps", "lab-worker\nlab-worker2\n")
    on_path.answers("docker inspect", code=1, err="Error: No such object")
    on_path.answers("docker inspect --format {{json .Mounts}} lab-worker2", OURS)
    assert await commands(on_path).is_ours()


async def test_kinds_steps_are_passed_on_and_its_last_words_are_the_error(on_path: OnPath) -> None:
    on_path.answers(
        "kind create",
        code=1,
        err='Creating cluster "lab" ...\n • Preparing nodes  ...\n ✗ Preparing nodes\nERROR: port is taken\n',
    )
    said: list[str] = []
    with pytest.raises(TargetError, match="ERROR: port is taken"):
        await commands(on_path, said).create(Path("cluster.yaml"), "", asyncio.Event())
    assert said == ['kind: Creating cluster "lab"', "kind: Preparing nodes"]
    assert "--image" not in on_path.calls()[0]  # kind's own choice is the user's default


async def test_images_can_be_loaded_once_all_nodes_run(on_path: OnPath) -> None:
    on_path.answers("kind create", err=" • Preparing nodes 📦  ...\n • Starting control-plane 🕹️  ...\n")
    there, said = asyncio.Event(), list[str]()
    await commands(on_path, said).create(Path("cluster.yaml"), "", there)
    assert there.is_set()
    assert said == ["kind: Preparing nodes 📦", "kind: Starting control-plane 🕹️"]
