"""What actions, probes and the control share: the run they belong to.

Under the supervisor everything comes from the environment; without ``GPU_HARNESS_LOAD_START_NS`` there, scenario time
begins with the load, whose go file says when: so this process can be up and ready before. Under plain ``chaos run`` the
connection comes from ``GPU_HARNESS_CONNECTION`` or ``./.gpu-harness/connection.json``, the run's folder is a new one
beside it, and scenario time begins with the experiment.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.clock import NS_PER_S, START_NS_ENV, RunClock, monotonic_ns
from harness.errors import BadInput, InternalError
from harness.faults.port import Objects
from harness.processes.lock import hold_lock
from harness.run.chaos.interrupt import Interruption
from harness.stack.description import addons, kinds
from harness.targets.applied import as_applied_later
from harness.targets.base import CONNECTION_ENV, CONNECTION_FILE, Connection
from harness.targets.manifests import read_manifests

RUN_DIR_ENV = "GPU_HARNESS_RUN_DIR"
LOAD_START_ENV = "GPU_HARNESS_LOAD_START_NS"
SEED_ENV = "GPU_HARNESS_SEED"
WORKING_DIR_ENV = "GPU_HARNESS_WORKING_DIR"
"""Where the user stood, for a supervisor that starts us elsewhere; our own working directory otherwise."""
EXTENSION = "gpu-harness"
ACTIONS_MODULE = "harness.run.chaos.actions"
GO_WITHIN_S, GO_POLL_S = 300.0, 0.02
LOCAL_CONNECTION = Path(".gpu-harness") / CONNECTION_FILE


@dataclass(frozen=True, slots=True)
class ChaosSettings:
    """What the actions need of the experiment's extension block; ``harness.spec`` reads it strictly before a run."""

    time_scale: float
    namespace: str
    selector: str
    recovery_s: float

    @classmethod
    def of(cls, experiment: Mapping[str, Any]) -> ChaosSettings:
        blocks = [e for e in experiment.get("extensions") or () if isinstance(e, dict) and e.get("name") == EXTENSION]
        if len(blocks) != 1:
            raise BadInput(
                f"the experiment has {len(blocks)} extensions named {EXTENSION}, not one",
                hint=f"add `extensions: [{{name: {EXTENSION}, time_scale: 1, workload: {{...}}}}]`",
            )
        workload = blocks[0].get("workload") or {}
        phases = blocks[0].get("phases") or {}
        try:
            return cls(
                time_scale=float(blocks[0].get("time_scale", 1.0)),
                namespace=str(workload["namespace"]),
                selector=str(workload["selector"]),
                recovery_s=float(phases.get("recovery_s", 0.0)),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(
                f"extension {EXTENSION} cannot be read: {type(error).__name__} {error}",
                hint="`gpu-harness validate` names the line",
            ) from error


@dataclass(frozen=True, slots=True)
class PlannedTargets:
    """What plan.json says: the seed, and the targets by fault id."""

    seed: int
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, run_dir: Path, seed: int) -> PlannedTargets:
        file = run_dir / "plan.json"
        if not file.exists():
            return cls(seed)
        try:
            raw = json.loads(file.read_text(encoding="utf-8"))
            targets = {f["fault_id"]: tuple(f.get("targets") or ()) for f in raw.get("faults", ())}
            return cls(int(raw["seed"]), targets)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InternalError(f"{file} cannot be read: {type(error).__name__}: {error}") from error


@dataclass(slots=True)
class RunContext:
    """One experiment run. ``fault_ids`` gives each method action of ours its id, by its place in the method."""

    run_dir: Path
    clock: RunClock
    load_start_ns: int
    connection: Connection
    settings: ChaosSettings
    plan: PlannedTargets
    interruption: Interruption
    folders: tuple[Path, ...]
    """Where relative paths of the experiment are looked for, in order."""
    go_file: Path | None = None
    """Holds the load's start once that is decided; None where ``load_start_ns`` is known already."""
    fault_ids: Mapping[int, str] = field(default_factory=dict)
    method_started: bool = False
    in_rollback: bool = False
    parent_gone: bool = False
    on_its_own: bool = False
    """Plain ``chaos run``: no supervisor looks after the run."""

    def manifest(self, path: str) -> Objects:
        """The objects of a manifest that an action brings, as the target's components can take them."""
        objects = read_manifests([self.find(path)], kinds(addons()))
        return as_applied_later(self.connection, objects)

    def find(self, path: str) -> Path:
        for folder in self.folders:
            if (found := folder / path).exists():
                return found
        raise BadInput(
            f"no file {path}", hint=f"it was looked for in {', '.join(str(folder) for folder in self.folders)}"
        )

    async def wait_for_load(self) -> None:
        """Until the supervisor lets the load go, where scenario time begins."""
        if self.go_file is None:
            return
        deadline = asyncio.get_running_loop().time() + GO_WITHIN_S
        while not self.go_file.exists():
            if asyncio.get_running_loop().time() > deadline:
                raise InternalError(f"the load did not start within {GO_WITHIN_S:g} s: no {self.go_file}")
            await asyncio.sleep(GO_POLL_S)
        self.load_start_ns = int(self.go_file.read_text())

    async def wait_for_scenario_s(self, after_s: float) -> float:
        """Returns at that scenario second, or at once when it has passed; says how late, in scenario seconds."""
        due_ns = self.load_start_ns + round(self.clock.clock_s(after_s) * NS_PER_S)
        await asyncio.sleep(max(0, due_ns - self.clock.now_ns()) / NS_PER_S)
        return self.clock.scenario_s(max(0, self.clock.now_ns() - due_ns))


def fault_ids(method: Sequence[Mapping[str, Any]], names: frozenset[str]) -> dict[int, str]:
    """``<func>-<n>`` by the identity of the method's entry, n from 1 in method order: the same ids as in plan.json."""
    ids: dict[int, str] = {}
    counts: dict[str, int] = {}
    for activity in method:
        provider = activity.get("provider") or {}
        func = provider.get("func")
        if provider.get("module") != ACTIONS_MODULE or func not in names:
            continue
        counts[func] = counts.get(func, 0) + 1
        ids[id(activity)] = f"{func}-{counts[func]}"
    return ids


def build_context(experiment: Mapping[str, Any], source: str | None, interruption: Interruption) -> RunContext:
    """``source`` is the experiment's path as given to ``chaos run``, None when it is not known."""
    settings = ChaosSettings.of(experiment)
    connection_file = _connection_file()
    connection = Connection.read(connection_file)
    if connection.time_scale != settings.time_scale:
        raise BadInput(
            f"the experiment runs at time_scale {settings.time_scale:g}, the cluster at {connection.time_scale:g}",
            hint="start the cluster from this experiment, so that all durations shrink alike",
        )
    run_dir = os.environ.get(RUN_DIR_ENV)
    path = Path(run_dir) if run_dir else _new_run_dir(connection_file)
    if not run_dir:
        hold_lock(path)  # for as long as this process lives, so that no sweep takes it for a dead run's
    clock = RunClock(int(os.environ.get(START_NS_ENV) or monotonic_ns()), settings.time_scale)
    load_start = os.environ.get(LOAD_START_ENV)
    beside = (Path(source).resolve().parent,) if source and Path(source).is_file() else ()
    return RunContext(
        run_dir=path,
        clock=clock,
        load_start_ns=int(load_start) if load_start else clock.now_ns(),
        connection=connection,
        settings=settings,
        plan=PlannedTargets.read(path, int(os.environ.get(SEED_ENV) or 0)),
        interruption=interruption,
        on_its_own=not run_dir,
        go_file=path / "load" / "go" if run_dir and not load_start else None,
        folders=(*beside, Path(os.environ.get(WORKING_DIR_ENV) or Path.cwd())),
    )


def _connection_file() -> Path:
    given = os.environ.get(CONNECTION_ENV)
    if given:
        return Path(given)
    run_dir = os.environ.get(RUN_DIR_ENV)
    return Path(run_dir) / CONNECTION_FILE if run_dir else LOCAL_CONNECTION


def _new_run_dir(connection_file: Path) -> Path:
    """Beside the connection, not among the system's temporary files: the undo journal must outlive a reboot."""
    return Path(tempfile.mkdtemp(prefix="chaos-run-", dir=connection_file.resolve().parent))


_current: RunContext | None = None
_why_not = "the control of gpu-harness did not run, so neither the run nor its guards are known"


def set_current(context: RunContext | None, why_not: str | None = None) -> None:
    global _current, _why_not
    _current = context
    if why_not is not None:
        _why_not = why_not


def find_current() -> RunContext | None:
    return _current


def current() -> RunContext:
    """The context the control made; without it no action may touch anything."""
    if _current is None:
        raise InternalError(
            _why_not,
            hint="add `controls: [{name: gpu-harness, provider: {type: python, module: harness.run.chaos.control}}]`",
        )
    return _current
