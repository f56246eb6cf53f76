from __future__ import annotations

import json

import pytest
from docker_on_path import OnPath
from docker_on_path import on_path as on_path

from harness.errors import TargetError
from harness.targets.kind.containers import ContainerMachines
from harness.targets.machines import Trouble

STATE = "docker inspect --format {{json"
AT = {"IPAddress": "172.18.0.4", "IPPrefixLen": 16}


def machines(
    on_path: OnPath, *, running: bool = True, paused: bool = False, connected: bool = True
) -> ContainerMachines:
    on_path.answers(f"{STATE} .State}}}}", json.dumps({"Running": running, "Paused": paused}))
    on_path.answers(f"{STATE} .NetworkSettings.Networks}}}}", json.dumps({"kind": AT} if connected else {}))
    return ContainerMachines(str(on_path.folder / "docker"), ["n1"])


@pytest.mark.parametrize(
    ("trouble", "begun", "ended"),
    [
        (
            Trouble.SILENT,
            "docker exec n1 systemctl kill -s STOP kubelet",
            "docker exec n1 systemctl kill -s CONT kubelet",
        ),
        (Trouble.FROZEN, "docker pause n1", "docker unpause n1"),
        (Trouble.OFF, "docker kill n1", "docker start n1"),
        (Trouble.DISCONNECTED, "docker network disconnect kind n1", "docker network connect kind n1"),
        (Trouble.RUNTIME_DOWN, "docker exec n1 systemctl stop containerd", "docker exec n1 systemctl start containerd"),
    ],
)
async def test_each_trouble_is_one_docker_command_and_so_is_its_end(
    on_path: OnPath, trouble: Trouble, begun: str, ended: str
) -> None:
    await machines(on_path).trouble("n1", trouble)
    await machines(on_path, paused=True, connected=False).relieve("n1", trouble)
    assert on_path.calls() == [begun, ended]


@pytest.mark.parametrize("trouble", [Trouble.FROZEN, Trouble.DISCONNECTED])
async def test_what_is_so_already_is_left_alone(on_path: OnPath, trouble: Trouble) -> None:
    await machines(on_path, paused=True, connected=False).trouble("n1", trouble)
    await machines(on_path).relieve("n1", trouble)
    assert on_path.calls() == []


async def test_a_node_that_is_back_on_the_network_answers_at_the_address_that_the_cluster_knows(
    on_path: OnPath,
) -> None:
    made = machines(on_path)
    await made.trouble("n1", Trouble.DISCONNECTED)
    on_path.answers(f"{STATE} .NetworkSettings.Networks}}}}", json.dumps({"kind": AT | {"IPAddress": "172.18.0.2"}}))
    await made.relieve("n1", Trouble.DISCONNECTED)
    assert on_path.calls() == [
        "docker network disconnect kind n1",
        "docker exec n1 ip address replace 172.18.0.4/16 dev eth0",
    ]


async def test_the_way_to_the_api_server_is_cut_once_and_restored_once(on_path: OnPath) -> None:
    rule = "OUTPUT -p tcp --dport 6443 -j DROP"
    on_path.answers(f"docker exec n1 iptables -C {rule}", code=1)
    await machines(on_path).trouble("n1", Trouble.CUT_OFF)
    on_path.answers(f"docker exec n1 iptables -C {rule}", code=0)
    await machines(on_path).relieve("n1", Trouble.CUT_OFF)
    changing = [call for call in on_path.calls() if " -C " not in call]
    assert changing == [f"docker exec n1 iptables -I {rule}", f"docker exec n1 iptables -D {rule}"]


async def test_a_machine_that_lost_its_power_for_good_is_no_target_any_more(on_path: OnPath) -> None:
    made = machines(on_path)
    await made.power_off("n1")
    assert (list(made.names()), on_path.calls()) == ([], ["docker kill n1"])


async def test_stock_is_without_power_and_comes_and_goes(on_path: OnPath) -> None:
    made = machines(on_path)
    await made.park(["n1"])
    await made.power_on("n1")
    assert list(made.names()) == ["n1"]
    await made.shut_down("n1")
    cp = "docker cp - n1:/etc/cni"  # or pods would get addresses of the Node that it was
    assert on_path.calls() == ["docker kill n1", cp, "docker start n1", "docker stop --time 2 n1"]


async def test_dockers_own_words_are_the_error(on_path: OnPath) -> None:
    made = machines(on_path)
    on_path.answers("docker pause", code=1, err="Error response from daemon: cgroup is gone")
    with pytest.raises(TargetError, match="pause n1` failed: Error response from daemon: cgroup is gone"):
        await made.trouble("n1", Trouble.FROZEN)


async def test_a_container_that_does_not_run_is_told_before_anything_is_tried_in_it(on_path: OnPath) -> None:
    with pytest.raises(TargetError, match="n1 is not running"):
        await machines(on_path, running=False).restart_kubelet("n1")
