"""A run stops by itself when it does more harm than it was meant to."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from harness.clock import NS_PER_S
from harness.errors import GuardRefused
from harness.faults.catalogue.consolidation import Consolidation
from harness.faults.guards import check_caps
from harness.faults.pick import NODE_POOL_LABEL, FleetNode
from harness.faults.scene import Scene
from harness.plan.plan import PlannedFault
from harness.run.preparing import prepare
from harness.run.running import run_virtually
from harness.run.stopping import StopConditions
from harness.run.tail import LoadTail
from harness.spec.safety import GuardsSpec, StopSpec
from harness.verdict import Status

ROOT = Path(__file__).resolve().parents[3]


class Load:
    def __init__(self, ended: int, not_ok: int) -> None:
        self.answer = ended, not_ok

    def ended_since(self, since_ns: int) -> tuple[int, int]:
        return self.answer


def never() -> dict[str, bool]:
    raise AssertionError("nobody wanted to know which nodes are ready")


@pytest.mark.parametrize(
    ("ended", "not_ok", "stops"), [(9, 9, False), (10, 5, False), (10, 6, True), (200, 101, True), (0, 0, False)]
)
def test_too_many_lost_requests_stop_it(ended: int, not_ok: int, stops: bool) -> None:
    conditions = StopConditions(StopSpec(not_ok_ratio_max=0.5), ())
    why = conditions.reason(0, Load(ended, not_ok), never)
    assert (why is not None) is stops
    assert why is None or f"{not_ok} of the {ended}" in why
    assert StopConditions(StopSpec(), ()).reason(0, Load(ended, ended), never) is None


def test_a_node_that_nobody_meant_to_hit_stops_it() -> None:
    conditions = StopConditions(StopSpec(nodes_not_ready_beyond_targets=True), {"a"})
    conditions.begin({"a": True, "b": True, "c": False})
    nothing = Load(0, 0)
    assert conditions.reason(0, nothing, lambda: {"a": False, "b": True, "c": False, "new": False}) is None
    assert conditions.reason(0, nothing, lambda: {"a": False}) is None  # b was taken away, which is the system's right
    why = conditions.reason(0, nothing, lambda: {"a": False, "b": False})
    assert why is not None and why.startswith("b not Ready")


def test_the_share_is_of_what_ended_lately(tmp_path: Path) -> None:
    lines = [{"e": "end", "end_ns": i * NS_PER_S, "outcome": "ok" if i < 10 else "http_5xx"} for i in range(20)]
    lines += [{"e": "end", "end_ns": 20 * NS_PER_S, "outcome": "aborted_by_client"}]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    tail = LoadTail(tmp_path / "records.jsonl")
    tail.update()
    assert tail.ended_since(0) == (21, 10)
    assert tail.ended_since(15 * NS_PER_S) == (6, 5)


def fault(name: str, targets: tuple[str, ...], starts_s: float, ends_s: float, gpus: int = 4) -> PlannedFault:
    radius = {"nodes": len(targets), "gpus": gpus * len(targets)}
    return PlannedFault(
        name, "spot_interruption", name, {}, targets, radius, starts_s, ends_s, True, targets, len(targets)
    )


@pytest.mark.parametrize(
    ("guards", "refused"),
    [
        (GuardsSpec(nodes_max=3), None),
        (GuardsSpec(nodes_max=2), "3 nodes in all"),
        (GuardsSpec(gpus_max=11), "12 GPUs in all"),
        (GuardsSpec(nodes_percent_max=29), "30 % of 10 nodes"),
        (GuardsSpec(nodes_percent_max=30), None),
        (GuardsSpec(nodes_at_once_max=2), None),
        (GuardsSpec(gpus_at_once_max=8, nodes_percent_at_once_max=20), None),
        (GuardsSpec(gpus_at_once_max=7), "8 GPUs at once at scenario second 50"),
        (GuardsSpec(nodes_percent_at_once_max=19), "20 % of 10 nodes at once"),
        (GuardsSpec(nodes_at_once_max=1), "2 nodes at once at scenario second 50"),
    ],
)
def test_caps_on_what_all_faults_hit_together(guards: GuardsSpec, refused: str | None) -> None:
    faults = [fault("x-1", ("a",), 0, 100), fault("x-2", ("b",), 50, 150), fault("x-3", ("c",), 150.5, 200)]
    faults.append(PlannedFault("p-1", "pause_load", "p", {}, ("load",), {}, 0, 9, False))
    if refused is None:
        check_caps(faults, guards, 10)
    else:
        with pytest.raises(GuardRefused, match=refused):
            check_caps(faults, guards, 10)


def test_a_node_that_is_lost_counts_until_another_can_have_come() -> None:
    deleted = [
        replace(fault(f"d-{i}", (name,), at, at), action="node_deleted", takes_nodes=True)
        for i, (name, at) in enumerate([("a", 300.0), ("b", 300.1), ("c", 600.0)])
    ]
    with pytest.raises(GuardRefused, match=r"2 nodes at once at scenario second 300\.1"):
        check_caps(deleted, GuardsSpec(nodes_at_once_max=1), 10)
    check_caps([deleted[0], deleted[2]], GuardsSpec(nodes_at_once_max=1), 10)


NODES = [FleetNode(f"on-demand-{i}", {NODE_POOL_LABEL: "on-demand"}, gpus=4) for i in range(1, 6)]


@pytest.mark.parametrize(
    ("arguments", "guards", "refused"),
    [
        pytest.param({}, GuardsSpec(nodes_max=5, gpus_max=20), None, id="all-of-the-pool"),
        pytest.param({}, GuardsSpec(nodes_max=4), "5 nodes in all", id="too-many-in-all"),
        pytest.param({}, GuardsSpec(gpus_max=19), "20 GPUs in all", id="too-many-gpus"),
        pytest.param({"budget": "40%"}, GuardsSpec(nodes_at_once_max=2, gpus_at_once_max=8), None, id="by-its-share"),
        pytest.param({"budget": "2"}, GuardsSpec(nodes_at_once_max=1), "2 nodes at once", id="by-its-number"),
        pytest.param({"budget": "41%"}, GuardsSpec(nodes_at_once_max=2), "3 nodes at once", id="rounded-up"),
        pytest.param(
            {"budget": "1", "why": "expiry"}, GuardsSpec(nodes_at_once_max=4), "5 nodes at once", id="no-budget"
        ),
    ],
)
def test_a_consolidated_pool_counts_with_its_nodes(
    arguments: dict[str, object], guards: GuardsSpec, refused: str | None
) -> None:
    spec = Consolidation.model_validate({"after_s": 10, "hold_s": 60, "pool": "on-demand", **arguments})
    scene = Scene(nodes=[*NODES, FleetNode("spot-1", {NODE_POOL_LABEL: "spot"}, gpus=4)], pools=["on-demand", "spot"])
    reach = spec.reach(scene, ("on-demand",))
    radius, at_once = spec.radius(scene, ("on-demand",)), spec.reach_at_once(len(reach))
    planned = PlannedFault("c-1", "consolidation", "c", {}, ("on-demand",), radius, 10, 70, True, reach, at_once)
    assert radius == {"node_pools": 1, "nodes": 5, "gpus": 20}
    if refused is None:
        check_caps([planned], guards, 6)
    else:
        with pytest.raises(GuardRefused, match=refused):
            check_caps([planned], guards, 6)


def _experiment(folder: Path, guards: dict[str, object]) -> Path:
    raw = yaml.safe_load((ROOT / "experiments" / "negative" / "server-aborts-on-sigterm.yaml").read_text())
    block = raw["extensions"][0]
    block["guards"] = guards
    block["load"] = str(ROOT / "loadprofiles" / Path(block["load"]).name)
    block["manifests"] = [str(ROOT / "experiments" / "manifests" / Path(name).name) for name in block["manifests"]]
    for entry in raw["method"]:
        arguments = entry["provider"]["arguments"]
        if "manifest" in arguments:
            arguments["manifest"] = str(ROOT / "experiments" / "manifests" / Path(arguments["manifest"]).name)
    path = folder / "experiment.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


def test_a_run_that_loses_too_much_is_broken_off_and_healed(tmp_path: Path) -> None:
    """Streams cut by the planted bug are the loss: whatever the checks would say, the run was broken off."""
    path = _experiment(tmp_path, {"stop_when": {"not_ok_ratio_max": 0.01, "for_s": 5}})
    prepared = prepare(path, seed=1, target="embedded", cut=None, virtual=True)
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    done = run_virtually(prepared, reports=tmp_path / "reports", plain=True, args=["gpu-harness", "run"])
    assert handlers == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    assert done.progress.ended == "aborted" and "not_ok_ratio_max" in done.progress.ended_detail
    findings = {finding.check: finding.status for finding in done.verdict.findings}
    assert findings["run_complete"] is not Status.PASS and findings["change_undone"] is Status.PASS
    assert done.verdict.status is not Status.PASS  # what was lost before the stop is its own proof
