"""One moment of a crash test: a short run of nothing but faults, one of its processes killed, and what is left then."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

import yaml
from crash_proc import of_run, watch_ends
from crash_state import Differences, State, differences, look
from crash_supervisor import supervise

from harness.errors import HarnessError
from harness.faults.fault import Variant
from harness.faults.registry import FAULTS
from harness.faults.sight import is_ready
from harness.faults.undo import UNDO_FILE, NothingLeft, Replay, replay
from harness.kube.http import HttpKube
from harness.kube.port import NODE
from harness.run.sweeping import find_runs, sweep_one
from harness.spec.experiment import load_experiment
from harness.targets.base import Connection
from harness.targets.embedded import EmbeddedTarget
from harness.targets.manifests import wait_until_available
from harness.targets.wanted import Places, wanted_by

HERE = Path(__file__).parent
WORKLOAD = HERE.parents[1] / "experiments" / "manifests" / "llm.yaml"
TIME_SCALE = 60.0
KINDS = ("supervisor", "chaos", "load")
NOTICE_S = 2.0
RUN_S = 7.0
"""Clock seconds after the load's start within which the moments of a running run lie."""
START_S = 3.0
EARLY = 0.15
"""Share of the moments that lie before the load's start."""
GONE_WITHIN_S = 60.0
TAKES_OBJECTS = frozenset({"spot_interruption", "node_deleted", "consolidation", "group_half_delivered", "pod_loss"})
"""Faults whose blast radius says that objects go."""
SETTLES_S = 10.0
_FORKS = multiprocessing.get_context("forkserver")  # so that each supervisor need not import everything anew
_FORKS.set_forkserver_preload(["harness.run.preparing", "harness.run.running"])
ACTIONS = "harness.run.chaos.actions"


@dataclass(frozen=True)
class Moment:
    """Drawn from one seed: what is killed when, and under which faults (as ``fault: variant``)."""

    number: int
    victim: str
    faults: tuple[str, ...]
    early: bool
    after_s: float


@dataclass
class Outcome:
    """What one moment showed. ``problems`` is what must not be."""

    moment: dict[str, Any]
    killed: str = ""
    changes: int = 0
    pending_at_kill: int = 0
    stopped: dict[str, dict[str, float]] = field(default_factory=dict)
    noticed_s: float | None = None
    healed_by: str = ""
    swept: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def all_variants() -> list[str]:
    """Those of every fault; the two without variants of their own come as they are."""
    named = [f"{fault.name}: {v.name}" for fault in FAULTS.values() for v in fault.variants]
    return [*named, "apply_objects: ", "pause_load: "]


def draw(seed: int, count: int) -> list[Moment]:
    """Every variant equally often, two in each run; every kind of process equally often."""
    rng = Random(f"crash-{seed}")
    deck: list[str] = []
    moments = []
    for number in range(count):
        while len(deck) < 2:
            fresh = all_variants()
            rng.shuffle(fresh)
            deck = fresh + deck
        faults = (deck.pop(), deck.pop())
        early = rng.random() < EARLY
        after_s = rng.uniform(0.0, START_S if early else RUN_S)
        moments.append(Moment(number, KINDS[number % len(KINDS)], faults, early, round(after_s, 3)))
    return moments


class Stage:
    """A cluster that moments share for as long as they leave it as it was."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runner = asyncio.Runner()
        self._target: EmbeddedTarget | None = None
        self._connection: Connection | None = None
        self._clusters = 0

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()
        self._runner.close()

    def play(self, moment: Moment, *, faults: bool = True) -> Outcome:
        folder = self._folder / f"moment-{moment.number}"
        folder.mkdir(parents=True)
        experiment = write_experiment(moment, folder, faults)
        connection = self._up(experiment)
        connection.write(folder / "connection.json")
        outcome, reports = Outcome(asdict(moment)), folder / "reports"
        before = self._runner.run(look(connection))
        run_and_kill(moment, experiment, folder, reports, self._world_pid(), outcome)
        self._runner.run(_sweep(reports, outcome))
        after = self._runner.run(look(connection))
        judge(outcome, reports, before, after)
        if outcome.problems or outcome.gone or not self._settled(connection):
            self.clear()
        return outcome

    def clear(self) -> None:
        if self._target is not None:
            self._runner.run(self._target.down())
        self._target = self._connection = None

    def _up(self, experiment: Path) -> Connection:
        if self._connection is not None:
            return self._connection
        self._clusters += 1
        folder = self._folder / f"cluster-{self._clusters}"
        folder.mkdir()
        self._target = EmbeddedTarget(wanted_by(load_experiment(experiment), self._clusters), Places(folder, folder))
        self._connection = self._runner.run(_with_fingerprint(self._target))
        return self._connection

    def _settled(self, connection: Connection) -> bool:
        return self._runner.run(_available(connection))

    def _world_pid(self) -> int:
        assert self._target is not None and self._target.child is not None
        return self._target.child.pid


async def _with_fingerprint(target: EmbeddedTarget) -> Connection:
    connection = await target.up()
    async with HttpKube(connection.kubeconfig) as kube:
        return replace(connection, fingerprint=await kube.fingerprint())


async def _available(connection: Connection) -> bool:
    async with HttpKube(connection.kubeconfig) as kube:
        try:
            await wait_until_available(kube, connection.namespace, "app=llm", SETTLES_S)
        except HarnessError:
            return False
        nodes = (await kube.list(NODE)).items
        return len(nodes) == 4 and all(is_ready(node) and not node["spec"].get("taints") for node in nodes)


def write_experiment(moment: Moment, folder: Path, faults: bool) -> Path:
    (folder / "load.yaml").write_text(yaml.safe_dump({
        "title": "hardly any", "description": "so that somebody sends", "duration_s": TIME_SCALE * (RUN_S + 3),
        "longest_stream_s": TIME_SCALE * 0.4, "arrivals": {"kind": "constant", "rate_per_s": 2},
        "tokens": {"prompt": {"kind": "fixed", "tokens": 5}, "output": {"kind": "fixed", "tokens": 5}},
    }))  # fmt: skip
    (folder / "extra.yaml").write_text(yaml.safe_dump({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra", "namespace": "inference"}, "data": {},
    }))  # fmt: skip
    rng = Random(f"starts-{moment.number}")
    actions = [_action(name, rng, TIME_SCALE) for name in moment.faults] if faults else []
    pools = [
        {"name": "spot-a", "capacity_type": "spot", "gpus": 4, "nodes": 1, "stock": 1, "zone": "zone-a"},
        {"name": "spot-b", "capacity_type": "spot", "gpus": 4, "nodes": 1, "stock": 1, "zone": "zone-b"},
        {"name": "on-demand", "capacity_type": "on-demand", "gpus": 4, "nodes": 2, "stock": 8, "zone": "zone-a"},
    ]
    path = folder / "experiment.yaml"
    heal = {"type": "action", "name": "heal", "provider": {"type": "python", "module": ACTIONS, "func": "heal"}}
    path.write_text(yaml.safe_dump({
        "title": "Killed at some moment", "description": "Nothing but faults.",
        "controls": [{"name": "gpu-harness", "provider": {"type": "python", "module": "harness.run.chaos.control"}}],
        "method": actions, "rollbacks": [heal],
        "extensions": [{
            "name": "gpu-harness", "time_scale": TIME_SCALE, "load": str(folder / "load.yaml"),
            "workload": {"namespace": "inference", "selector": "app=llm", "service": "llm", "model": "llama-8b"},
            "manifests": [str(WORKLOAD)], "world": {"preset": "quick", "pools": pools},
            "phases": {"recovery_s": TIME_SCALE * RUN_S}, "checks": [{"recovery": {}}],
        }],
    }))  # fmt: skip
    return path


def _action(name: str, rng: Random, time_scale: float) -> dict[str, Any]:
    fault, _, variant = name.partition(": ")
    own: dict[str, Any] = {"apply_objects": {"manifest": "extra.yaml"}, "pause_load": {"hold_s": 180}}.get(fault, {})
    known: tuple[Variant, ...] = FAULTS[fault].variants
    arguments = dict(next((v.arguments for v in known if v.name == variant), own))
    provider = {"type": "python", "module": ACTIONS, "func": fault}
    provider |= {"arguments": {"after_s": round(rng.uniform(0.0, time_scale), 1), **arguments}}
    return {"type": "action", "name": name, "background": True, "provider": provider}


def run_and_kill(moment: Moment, experiment: Path, folder: Path, reports: Path, world: int, outcome: Outcome) -> None:
    """Everything of the run is over when it returns."""
    told = (experiment, folder / "connection.json", reports, moment.number, folder / "supervisor.log")
    process = _FORKS.Process(target=supervise, args=told, daemon=True)
    process.start()
    assert process.pid is not None
    try:
        pids = _await_moment(moment, process, reports)
        outcome.pending_at_kill = sum(len(replay(f).pending) for f in reports.rglob(UNDO_FILE))
        victim = pids.pop(moment.victim, None)
        if victim is None or not process.is_alive():
            outcome.killed = "nobody: it was over"
            process.join(GONE_WITHIN_S)
            return
        outcome.killed = moment.victim
        since_s = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        ends = watch_ends(pids, since_s, (world,), GONE_WITHIN_S)
        process.join(GONE_WITHIN_S)
        outcome.stopped = {kind: asdict(end) | {"own_s": end.own_s} for kind, end in ends.items()}
        _judge_ends(outcome, pids, ends_own={kind: end.own_s for kind, end in ends.items()})
        _judge_notice(outcome, reports, since_s)
    finally:
        for pid in (*of_run(reports).values(), process.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.join()


def _await_moment(moment: Moment, process: BaseProcess, reports: Path) -> dict[str, int]:
    """Until the moment has come and its victim exists; the processes of the run then."""
    deadline = time.monotonic() + 90.0
    while not moment.early and not any(reports.rglob("load/go")):
        if not process.is_alive() or time.monotonic() > deadline:
            return {}
        time.sleep(0.02)
    time.sleep(moment.after_s)
    assert process.pid is not None
    while moment.victim not in (pids := of_run(reports) | {"supervisor": process.pid}):
        if not process.is_alive() or time.monotonic() > deadline:
            return {}
        time.sleep(0.02)
    return pids


def _judge_ends(outcome: Outcome, pids: dict[str, int], ends_own: dict[str, float]) -> None:
    """Whoever is left without a parent is gone within two seconds, and so is the load whoever died. Chaos that is told
    by the supervisor heals first, and watches the healing; the supervisor writes the history down."""
    for kind in pids:
        if kind not in ends_own:
            outcome.problems.append(f"{kind} was still there {GONE_WITHIN_S:g} s after {outcome.killed} was killed")
        elif ends_own[kind] > NOTICE_S and (kind == "load" or outcome.killed == "supervisor"):
            outcome.problems.append(f"{kind} took {ends_own[kind]:.2f} s to stop after {outcome.killed} was killed")


def _judge_notice(outcome: Outcome, reports: Path, since_s: float) -> None:
    """When the supervisor saw that a child had died: the mark it leaves in the history, on the system's clock."""
    if outcome.killed == "supervisor":
        return
    for marks in reports.rglob("history/marks.jsonl"):
        start_ns = _start_ns(marks.parents[1])
        for line in marks.read_text().splitlines():
            mark = json.loads(line)
            if mark["name"] in ("child_died", "aborted") and start_ns is not None:
                outcome.noticed_s = round((start_ns + mark["t_ns"]) / 1e9 - since_s, 3)
    if outcome.noticed_s is None:
        outcome.problems.append(f"nobody noticed that {outcome.killed} was killed")


def _start_ns(run_dir: Path) -> int | None:
    try:
        return int(json.loads((run_dir / "load" / "load.json").read_text())["start_ns"])
    except (OSError, ValueError, KeyError):
        return None


async def _sweep(reports: Path, outcome: Outcome) -> None:
    journals = [replay(file) for file in reports.rglob(UNDO_FILE)]
    outcome.changes = sum(len(j.entries) for j in journals)
    pending = sum(len(j.pending) for j in journals)
    outcome.healed_by = "nobody needed to" if not outcome.pending_at_kill else "sweep" if pending else "the run itself"
    for _ in range(2):  # the second one finds nothing left to do
        for run_dir in list(find_runs([reports])):
            left = await sweep_one(run_dir, heal=True)
            outcome.swept += [f"{left.found}: {line}" for line in left.lines]
            if not left.clean:
                outcome.problems.append(f"sweep left something: {'; '.join(left.lines)}")
    if remains := list(find_runs([reports])):
        outcome.problems.append(f"the journal is not closed: {remains}")


def judge(outcome: Outcome, reports: Path, before: State, after: State) -> None:
    found: Differences = differences(before, after)
    journals = [replay(file) for file in reports.rglob(UNDO_FILE)]
    outcome.problems += found.written
    outcome.gone, outcome.other = found.gone, found.other
    declared = _declared(journals)
    if found.gone and not declared:
        outcome.problems += [f"{name}: gone, and no fault of the run declares that it goes" for name in found.gone]
    if living := of_run(reports):
        outcome.problems.append(f"still running: {living}")


def _declared(journals: Sequence[Replay]) -> set[str]:
    """Faults in the journals that say of themselves that objects go."""
    faults = {entry.fault_id.rpartition("-")[0] for journal in journals for entry in journal.entries}
    ended = {e.fault_id for j in journals for e in j.entries if isinstance(e.undo, NothingLeft)}
    return (faults & TAKES_OBJECTS) | {e.rpartition("-")[0] for e in ended}
