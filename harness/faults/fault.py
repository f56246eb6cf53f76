"""What a fault is: its arguments as an experiment writes them, and its steps.

A fault goes through the same steps on every target: ``pick`` (pure), ``inject`` (its undo is on disk before), observing
its ``signs`` (by other means than the injection), ``outlast`` (until its own course is over), and healing, which undoes
what the harness did and is observed by the same signs. All else (the Chaos Toolkit action, the plan, the documentation)
is derived from the class.
"""

from __future__ import annotations

import asyncio
import enum
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

from harness.clock import NS_PER_S
from harness.faults.fidelity import KUBECONFIG, NO_HAND, NOT_BUILT, ON_FAKES, Fidelity, FidelityMap, fidelity_in
from harness.faults.permissions import Need
from harness.faults.pick import NODE_POOL_LABEL, matching_nodes, pick_nodes
from harness.faults.port import Ground
from harness.faults.scene import Scene
from harness.faults.undo import About, Undo
from harness.spec.model import Count, Flag, LabelSelector, SecondsFromZero, SpecModel


class Target(enum.StrEnum):
    """What kind of thing the names among a fault's targets are."""

    NODES = "nodes"
    PODS = "pods"
    POOLS = "pools"
    OBJECTS = "objects"
    PARTS = "parts"
    """Parts of the system itself: a controller, a link, the metrics pipeline, the load."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the ways in which a fault comes in the field. ``arguments`` are those of the fault but for ``after_s``."""

    name: str
    what: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    demand_gpus: int = 0
    """One-GPU pods that must arrive while the fault is on, for it to have anything to act on."""
    demand_leaves: bool = False
    """They are there before, and go when the fault begins."""
    pools: tuple[Mapping[str, Any], ...] = ()
    """Pools of instances that it needs beside those of the rehearsal, as an experiment's ``world`` writes them."""


@dataclass(frozen=True, slots=True)
class Strike:
    """One injection under way. ``before`` holds what the fault remembers of the time before it, by name."""

    fault: Fault
    ground: Ground
    fault_id: str
    targets: tuple[str, ...]
    before: Mapping[str, str] = field(default_factory=dict)
    notes: dict[str, tuple[str, float]] = field(default_factory=dict)
    """What was seen last, and since when, by what it is about: for what shows by not changing any more."""

    def unchanged_s(self, about: str, value: str) -> float:
        """Scenario seconds since ``value`` was first seen, on our own clock: nobody else's is compared with it."""
        now_s = asyncio.get_running_loop().time()
        last = self.notes.get(about)
        if last is None or last[0] != value:
            self.notes[about] = (value, now_s)
            return 0.0
        return self.ground.clock.scenario_s(round((now_s - last[1]) * NS_PER_S))

    def will_undo(self, undo: Undo) -> int:
        """Call before the change. When this returns, its undo is on disk."""
        arguments = self.fault.model_dump(mode="json", exclude_unset=True)
        return self.ground.undo.before(self.fault_id, undo, About(self.fault.name, arguments, self.targets))


class Fault(SpecModel, ABC):
    """The docstring of each class states the blast radius; its module's docstring, what happens."""

    name: ClassVar[str]
    colour: ClassVar[str]
    """Of its band in plots."""
    kind: ClassVar[Target]
    disruptive: ClassVar[bool] = True
    """False for what is part of the plan, such as a workload that arrives: it opens no ``fault`` phase."""
    fidelity: ClassVar[FidelityMap] = ON_FAKES
    real_with: ClassVar[str] = ""
    """The real component that makes native what is emulated without it."""
    why_not: ClassVar[Mapping[str, str]] = {}
    """Why a target cannot have it, where that is more than "not built"."""
    undone_by: ClassVar[tuple[str, ...]] = ()
    """Kinds of the undo that it journals."""
    variants: ClassVar[tuple[Variant, ...]] = ()
    drains: ClassVar[bool] = False
    """Whether nodes of the pools that it hits are drained."""
    takes_nodes: ClassVar[bool] = False
    """Whether its nodes are lost, so that no later fault may be planned on them."""

    after_s: SecondsFromZero

    def cannot_on(self, target: str) -> str | None:
        """Why a target that has this fault cannot have it with these arguments; None where it can."""
        return None

    @property
    def starts_s(self) -> float:
        """Scenario second at which it begins, counted from the load's start."""
        return self.after_s

    @property
    def ends_s(self) -> float:
        """Scenario second at which its own course is over."""
        return self.after_s

    @abstractmethod
    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        """The targets. Pure, and without repeats; empty where nobody can know them before the run."""

    def fits(self, scene: Scene, planned: Sequence[str]) -> bool:
        """Whether the planned targets are still right in the running cluster."""
        return bool(planned)

    def radius(self, scene: Scene, targets: Sequence[str]) -> dict[str, int]:
        """How much the targets are, for the plan."""
        return {} if self.kind is Target.PARTS else {self.kind.value: len(targets)}

    def reach(self, scene: Scene, targets: Sequence[str]) -> tuple[str, ...]:
        """The nodes that it may take out: its targets, or those of the pools that it drains, as far as they are there
        when the plan is made."""
        if self.kind is Target.NODES:
            return tuple(targets)
        pools = set(targets) if self.drains else set()
        return tuple(node.name for node in scene.nodes if node.labels.get(NODE_POOL_LABEL) in pools)

    def namespaces(self, ground: Ground) -> tuple[str, ...]:
        """Where it makes objects, beside the workload's namespace; empty for the whole cluster's."""
        return ()

    def reach_at_once(self, nodes: int) -> int:
        """How many of so many nodes within its reach may be in trouble at the same time."""
        return nodes

    def most_targets(self) -> int:
        """What the guards hold it to."""
        return 1

    def seen_s(self) -> float:
        """Scenario seconds within which its effect should show on every target."""
        return 60.0

    def healed_s(self) -> float | None:
        """Scenario seconds within which the effect should be gone once it is undone; None where undoing changes
        nothing that could be seen, as with a pod that was deleted."""
        return 60.0

    def longest_s(self) -> float:
        """Scenario seconds after which every step must be over; the caller adds its own slack."""
        return self.seen_s() + (self.healed_s() or 0.0)

    def needs(self, namespace: str) -> tuple[Need, ...]:
        """What it must be allowed to do beyond what every run may, heal included. ``namespace``: the workload's."""
        return ()

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        """What ``signs`` must know of the time before: uids, counters."""
        return {}

    @abstractmethod
    async def inject(self, strike: Strike) -> None:
        """Makes the change; its undo is on disk before."""

    @abstractmethod
    async def signs(self, strike: Strike) -> dict[str, str]:
        """Everything on which the effect shows now, picked or not, with what shows it. By other means than the
        injection: what the injection was answered proves nothing."""

    @abstractmethod
    def expected(self) -> tuple[str, str]:
        """What ``signs`` looks for, and where to look when it did not come."""

    async def outlast(self, strike: Strike, since_s: float) -> str | None:
        """Waits until the fault's own course is over and says what ended it; None where only heal ends it.
        ``since_s``: seconds of the loop's clock at which it was injected."""
        return None


class NodePick(SpecModel):
    """Which nodes a fault may hit, and how many of them."""

    selector: LabelSelector
    count: Count = 1
    brought: Flag = False
    """Whether it is nodes that a provisioner brings during the run: they are picked when the fault begins, for nobody
    knows their names before."""


class NodeFault(Fault):
    """A fault whose targets are nodes."""

    kind: ClassVar[Target] = Target.NODES

    nodes: NodePick

    def pick(self, scene: Scene, rng: Random) -> tuple[str, ...]:
        if self.nodes.brought and not scene.running:
            return ()
        return pick_nodes(scene.nodes, self.nodes.selector, self.nodes.count, rng)

    def fits(self, scene: Scene, planned: Sequence[str]) -> bool:
        able = set(matching_nodes(scene.nodes, self.nodes.selector))
        return len(planned) == self.nodes.count and set(planned) <= able

    def radius(self, scene: Scene, targets: Sequence[str]) -> dict[str, int]:
        if self.nodes.brought and not scene.running:
            return {"nodes": self.nodes.count}
        gpus = {node.name: node.gpus for node in scene.nodes}
        return {"nodes": len(targets), "gpus": sum(gpus.get(name, 0) for name in targets)}

    def most_targets(self) -> int:
        return self.nodes.count


def fidelity_on(fault: type[Fault], target: str, stack: Collection[str] = ()) -> Fidelity:
    """``stack``: the real components that run beside the target's own."""
    fidelity = fidelity_in(fault.fidelity, target)
    return Fidelity.NATIVE if fidelity is Fidelity.EMULATED and fault.real_with in stack else fidelity


def why_unsupported(fault: type[Fault], target: str) -> str:
    return fault.why_not.get(target, NO_HAND if target == KUBECONFIG else NOT_BUILT)
