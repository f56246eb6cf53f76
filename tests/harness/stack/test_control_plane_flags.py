"""The command lines of the four programs: what a time scale and a planted bug change, and nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes.config import PlantedBug, PoolConfig, WorldConfig
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.certificates import Pair
from harness.stack.control_plane_flags import Layout, Settings, launches
from harness.stack.find import Binaries, Binary
from harness.targets.controlplane.target import settings_for

PAIR = Pair(Path("/x.crt"), Path("/x.key"))
LAYOUT = Layout(
    folder=Path("/run"),
    ports={name: 20000 + n for n, name in enumerate(Layout.PORTS)},
    cluster_authority=Path("/ca.crt"),
    etcd_authority=Path("/etcd-ca.crt"),
    front_proxy_authority=Path("/front-ca.crt"),
    serving=PAIR,
    etcd=PAIR,
    front_proxy=PAIR,
    service_account_keys=PAIR,
    tokens=Path("/tokens.csv"),
)
BINARIES = Binaries({c.name: Binary(c.name, Path("/bin") / c.name, "1.37.2") for c in CONTROL_PLANE})


def flags(settings: Settings) -> dict[str, dict[str, str]]:
    """By program, then by flag."""
    return {
        launch.name: dict(word.removeprefix("--").split("=", 1) for word in launch.argv[1:])
        for launch in launches(BINARIES, LAYOUT, settings)
    }


def changed(settings: Settings) -> dict[str, dict[str, str | None]]:
    """What differs from real time."""
    base, other = flags(Settings()), flags(settings)
    found = {
        name: {
            f: other[name].get(f)
            for f in base[name].keys() | other[name].keys()
            if base[name].get(f) != other[name].get(f)
        }
        for name in base
    }
    return {name: diff for name, diff in found.items() if diff}


def test_they_start_in_order_and_on_this_machine_only() -> None:
    by_name = flags(Settings())
    assert list(by_name) == ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]
    assert all(by_name[name]["bind-address"] == "127.0.0.1" for name in list(by_name)[1:])
    assert all("127.0.0.1" in value for flag, value in by_name["etcd"].items() if flag.startswith("listen-"))
    assert by_name["kube-apiserver"]["authorization-mode"] == "RBAC"


def test_a_time_scale_shortens_what_they_count_and_nothing_else() -> None:
    assert changed(Settings(time_scale=15)) == {
        "kube-apiserver": {
            "default-not-ready-toleration-seconds": "20",
            "default-unreachable-toleration-seconds": "20",
        },
        "kube-controller-manager": {
            "node-monitor-period": "0.333s",
            "node-monitor-grace-period": "3.333s",
            "node-startup-grace-period": "4.000s",
            "node-eviction-rate": "1.500",
            "secondary-node-eviction-rate": "0.150",
            "horizontal-pod-autoscaler-sync-period": "1.000s",
            "horizontal-pod-autoscaler-downscale-stabilization": "20.000s",
            "horizontal-pod-autoscaler-initial-readiness-delay": "2.000s",
            "horizontal-pod-autoscaler-cpu-initialization-period": "20.000s",
        },
        "kube-scheduler": {"pod-max-in-unschedulable-pods-duration": "20.000s"},
    }


def test_gates_of_all_components_and_of_one() -> None:
    gates = {"all": {"TopologyAwareWorkloadScheduling": True}, "kube-scheduler": {"GenericWorkload": False}}
    known = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
    assert changed(Settings(gates=gates)) == {
        "kube-apiserver": {"feature-gates": known},
        "kube-controller-manager": {"feature-gates": known},
        "kube-scheduler": {"feature-gates": "GenericWorkload=false,TopologyAwareWorkloadScheduling=true"},
    }


def test_without_gangs_nobody_is_told_of_them() -> None:
    assert changed(Settings(gangs=False)) == {
        "kube-apiserver": {"feature-gates": None, "runtime-config": None},
        "kube-controller-manager": {"feature-gates": None},
        "kube-scheduler": {"feature-gates": None},
    }


@pytest.mark.parametrize(
    ("bug", "scheduler_gangs"), [(PlantedBug.GANG_BOUND_ONE_BY_ONE, False), (PlantedBug.DRAIN_IGNORES_PDB, True)]
)
def test_the_gang_bug_is_a_scheduler_that_was_not_told(bug: PlantedBug, scheduler_gangs: bool) -> None:
    config = WorldConfig(1, 15, (PoolConfig("p", "spot"),), planted_bugs=frozenset([bug]))
    settings = settings_for(config)
    assert settings == Settings(time_scale=15, scheduler_gangs=scheduler_gangs)
    assert ("feature-gates" in flags(settings)["kube-scheduler"]) is scheduler_gangs
    assert "feature-gates" in flags(settings)["kube-apiserver"]
