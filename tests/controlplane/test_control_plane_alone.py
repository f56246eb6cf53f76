"""The four real programs: up with rights of their own, told when one dies, all gone with whoever started them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness.kube.http import HttpKube
from harness.kube.port import NAMESPACE, NODE, POD, POD_GROUP, Json
from harness.stack.find import Binaries
from harness.stack.kubernetes import ControlPlane, running_control_plane

NODE_OBJECT: Json = {"metadata": {"name": "n"}, "spec": {}}
CAPACITY = {"cpu": "8", "memory": "8Gi", "pods": "10"}
POD_OBJECT: Json = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "i"}], "tolerations": [{"operator": "Exists"}]},
}


async def eventually(call: Any, wanted: Any, deadline_s: float = 20) -> None:
    async with asyncio.timeout(deadline_s):
        while (await call()) != wanted:
            await asyncio.sleep(0.05)


async def test_it_schedules_and_serves_gangs_and_knows_who_asks(control_plane: ControlPlane) -> None:
    async with HttpKube(control_plane.kubeconfig) as kube:
        await kube.create(NODE, NODE_OBJECT)
        await kube.patch(NODE, "n", {"status": {"allocatable": CAPACITY, "capacity": CAPACITY}}, subresource="status")
        await eventually(lambda: _account(kube), True)
        await kube.create(POD, POD_OBJECT)

        async def node() -> str | None:
            return (await kube.get(POD, "p", "default"))["spec"].get("nodeName")

        await eventually(node, "n")
        assert (await kube.list(POD_GROUP)).items == ()
        assert (
            len({n["metadata"]["name"] for n in (await kube.list(NAMESPACE)).items} & {"default", "kube-system"}) == 2
        )
    async with httpx.AsyncClient(verify=False, trust_env=False) as anybody:
        assert (await anybody.get(f"{control_plane.url}/api/v1/nodes")).status_code == 403


async def _account(kube: HttpKube) -> bool:
    answer = await kube.raw("/api/v1/namespaces/default/serviceaccounts")
    return bool(answer["items"])


async def test_one_that_dies_is_told_and_nothing_is_left(binaries: Binaries, tmp_path: Path) -> None:
    folder = tmp_path / "control-plane"
    async with running_control_plane(binaries, folder) as running:
        assert running.dead() is None
        assert (running.kubeconfig.stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
        os.kill(running.services.pids["kube-scheduler"], signal.SIGKILL)
        async with asyncio.timeout(5):
            while (dead := running.dead()) is None:
                await asyncio.sleep(0.02)
        assert dead.how_it_ended() == "kube-scheduler was killed by SIGKILL"
        assert dead.last_lines()
    assert not folder.exists()
    assert sorted(log.name for log in (tmp_path / "logs").iterdir()) == [
        "etcd.log", "kube-apiserver.log", "kube-controller-manager.log", "kube-scheduler.log",
    ]  # fmt: skip
    assert await processes_naming(str(folder)) == []


STARTER = """
import asyncio, sys
from pathlib import Path
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.find import find_binaries
from harness.stack.kubernetes import running_control_plane
async def main():
    async with running_control_plane(find_binaries(CONTROL_PLANE), Path(sys.argv[1])):
        print("up", flush=True)
        await asyncio.sleep(120)
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_all_are_dead_two_seconds_after_whoever_started_them_was_killed(
    binaries: Binaries, tmp_path: Path
) -> None:
    folder = tmp_path / "control-plane"
    argv = [sys.executable, "-c", STARTER, str(folder)]
    starter = await asyncio.create_subprocess_exec(*argv, stdout=subprocess.PIPE, start_new_session=True)
    assert starter.stdout is not None
    assert await starter.stdout.readline() == b"up\n"
    assert len(await processes_naming(str(folder))) >= 9  # itself, four guards, four programs
    starter.kill()
    await starter.wait()
    async with asyncio.timeout(2):
        while await processes_naming(str(folder)):
            await asyncio.sleep(0.05)
    assert not folder.exists(), "keys and data went with them"


async def processes_naming(text: str) -> list[str]:
    found = await asyncio.create_subprocess_exec("ps", "-eo", "pid,stat,args", "-ww", stdout=subprocess.PIPE)
    out, _ = await found.communicate()
    return [line for line in out.decode().splitlines() if text in line and line.split()[1][0] != "Z"]
