"""The same without processes, in virtual time: two faults at once, everything of ours dead at some moment, then a heal.

Dead means that from one moment on nothing reaches the cluster any more, and that the journal is what it was then: no
``finally`` has any say.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from crash_state import State, differences, look_at

from harness.errors import HarnessError
from harness.faults.fault import Fault
from harness.faults.fidelity import VIRTUAL
from harness.faults.heal import heal_pending
from harness.faults.log import FaultLog
from harness.faults.port import Ground, Patience
from harness.faults.registry import FAULTS
from harness.faults.undo import UNDO_FILE, UndoJournal, replay
from harness.faults.world_control import ForwardingWorld, WorldControl
from harness.kube.port import CONFIG_MAP, ApiError, ForwardingKube, Json, Kube, Resource
from harness.run.playing import Play, play
from harness.run.virtual.cluster import Cluster
from harness.run.virtual.loop import VirtualClock, VirtualLoop
from harness.run.virtual.rehearsal import NAMESPACE_NAME, SELECTOR, SETTLE_S, TIME_SCALE, standing_world

WORKLOAD = Path(__file__).parents[2] / "experiments" / "manifests" / "llm.yaml"
LONGEST_S = 320.0
"""Scenario seconds after the first fault within which the moments lie."""
AFTER_S = 60.0
EXTRA: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extra", "namespace": NAMESPACE_NAME}}


class Dead(ConnectionError):
    """Of a process that is no more."""


class Killable:
    """Lets calls through until ``kill``."""

    def __init__(self) -> None:
        self.killed = False

    def check(self) -> None:
        if self.killed:
            raise Dead("killed")


class KillableKube(ForwardingKube):
    def __init__(self, kube: Kube, life: Killable) -> None:
        super().__init__(kube)
        self._life = life

    async def enter(
        self, verb: str, resource: Resource, namespace: str | None, name: str = "", subresource: str = ""
    ) -> None:
        self._life.check()


class KillableWorld(ForwardingWorld):
    def __init__(self, world: WorldControl, life: Killable) -> None:
        super().__init__(world)
        self._life = life

    async def before_change(self) -> None:
        self._life.check()


def variants() -> list[tuple[str, str]]:
    """All but those that act on a load generator: there is none here."""
    return [(f.name, v.name) for f in FAULTS.values() for v in f.variants] + [("apply_objects", "")]


def made(name: str, variant: str) -> Fault:
    kind = FAULTS[name]
    arguments = next((v.arguments for v in kind.variants if v.name == variant), {"manifest": "extra"})
    return kind.model_validate({"after_s": 0, **arguments})


@dataclass(frozen=True)
class Healed:
    """``problems`` is what must not be; ``changed`` the faults that had changed anything."""

    problems: list[str]
    changed: list[str]


def draw_pair(seed: int) -> list[tuple[str, str]]:
    return Random(f"pair-{seed}").sample(variants(), 2)


def killed_at(pair: Sequence[tuple[str, str]], seed: int) -> Healed:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner, tempfile.TemporaryDirectory() as folder:
        return runner.run(_killed_at(pair, Path(folder), seed))


async def _killed_at(pair: Sequence[tuple[str, str]], folder: Path, seed: int) -> Healed:
    rng = Random(f"killed-{seed}")
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    clock = VirtualClock(loop, TIME_SCALE)
    async with standing_world(WORKLOAD, seed) as cluster:
        await asyncio.sleep(clock.clock_s(SETTLE_S))
        before = await _look(cluster)
        life = Killable()
        ground = Ground(
            target=VIRTUAL, namespace=NAMESPACE_NAME, kube=cluster.kube(), clock=clock,
            undo=UndoJournal(folder, clock), run_dir=folder, selector=SELECTOR, world=cluster.control,
            senses=cluster.senses, label=f"killed-{seed}", manifest=lambda name: ((CONFIG_MAP, EXTRA),),
            patience=Patience(poll_s=0.1, slack_s=1.0),
        )  # fmt: skip
        mortal = replace(
            ground, kube=KillableKube(ground.kube, life), world=KillableWorld(cluster.control, life)
        )  # fmt: skip
        playing = [
            asyncio.create_task(_play(made(*what), f"{what[0]}-{n}", mortal, rng.uniform(0.0, 60.0), seed))
            for n, what in enumerate(pair, start=1)
        ]
        await asyncio.sleep(clock.clock_s(rng.uniform(0.0, LONGEST_S)))
        life.killed = True
        journal = (folder / UNDO_FILE).read_bytes() if (folder / UNDO_FILE).exists() else b""
        for task in playing:
            task.cancel()
        await asyncio.gather(*playing, return_exceptions=True)
        (folder / UNDO_FILE).write_bytes(journal)
        await asyncio.sleep(clock.clock_s(rng.uniform(0.0, AFTER_S)))
        report = await heal_pending(ground, None)
        again = await heal_pending(ground, None)
        assert again.undone == report.undone and again.left == report.left
        changed = sorted({entry.fault_id for entry in replay(folder / UNDO_FILE).entries})
        found = differences(before, await _look(cluster))
        return Healed([*found.written, *report.left, *report.errors], changed)


async def _play(fault: Fault, fault_id: str, ground: Ground, after_s: float, seed: int) -> None:
    await asyncio.sleep(ground.clock.clock_s(after_s))
    log = FaultLog(ground.run_dir, ground.clock)
    try:
        await play(Play(fault, fault_id, seed), ground, log, 0.0)
    except (HarnessError, ApiError, OSError):
        return  # what a fault says is not the point here


async def _look(cluster: Cluster) -> State:
    control = cluster.world.surroundings.control
    turned = {f"{knob}/{target}": value for (knob, target), value in control.knobs.turned().items()}
    instances = {i["id"]: i["state"] for i in control.instances()}
    return State(await look_at(cluster.kube("crash-test")), turned, instances)
