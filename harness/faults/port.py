"""What a fault is, and what it stands on.

A fault goes through the same steps on every target: ``pick`` (pure), ``inject``, ``observe`` (proof by other means than
the injection), ``outlast`` (until its own course is over) and ``heal`` (undoes what the harness did; idempotent).
Faults are asynchronous and know only the ports here, so they run under a virtual clock as well.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, ClassVar, Protocol

from harness.errors import TargetError
from harness.kube.port import Kube

if TYPE_CHECKING:
    from harness.faults.cloud_control import CloudControl
    from harness.faults.pick import FleetNode
    from harness.faults.undo import Undo, UndoJournal


class Fidelity(enum.StrEnum):
    """How true a fault is on a target. UNSUPPORTED is an error before the run, never a silent skip."""

    NATIVE = "native"
    EMULATED = "emulated"
    UNSUPPORTED = "unsupported"


class NotObserved(TargetError):
    """The injection was accepted, but its effect was not seen in time."""


TARGETS = ("embedded", "controlplane", "node", "kind", "kubeconfig")
"""Every target there is, for faults whose fidelity is the same on all."""


EMBEDDED, VIRTUAL = "embedded", "embedded-virtual"


class LoadControl(Protocol):
    """The load generator, as the fault sees it that stops it."""

    def resume_undo(self) -> Undo:
        """What resumes it, to be journaled before it is stopped. Raises ``TargetError`` when it has ended."""
        ...

    def pause(self) -> None: ...

    def paused(self) -> str | None:
        """What shows that it stands still, None while it runs."""
        ...

    def resume(self, undo: Undo) -> str:
        """Says what it found; there being nothing to resume is no error."""
        ...


class Clock(Protocol):
    """History time and the time scale; ``harness.clock.RunClock`` is one."""

    def now_ns(self) -> int: ...

    def clock_s(self, scenario_s: float) -> float: ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long faults wait, in clock seconds, beyond what the scenario itself asks for."""

    poll_s: float = 0.1
    slack_s: float = 5.0
    """Granted on top of every scaled deadline, for a machine that is busy."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a fault stands on during one run."""

    target: str
    namespace: str
    kube: Kube
    clock: Clock
    undo: UndoJournal
    run_dir: Path
    cloud: CloudControl | None = None
    load: LoadControl | None = None
    """How the load generator is stopped and resumed; None: it is a process of this run, known by its folder."""
    label: str | None = None
    """Names the run on what it creates; None: the folder's name and a hash of its path."""
    patience: Patience = field(default_factory=Patience)

    def within_s(self, scenario_s: float) -> float:
        """Clock seconds to wait for something that should take ``scenario_s`` at most."""
        return self.clock.clock_s(scenario_s) + self.patience.slack_s


class Fault(Protocol):
    """One injection with its parameters. The class docstring states the blast radius."""

    name: ClassVar[str]
    colour: ClassVar[str]
    """Of its band in plots."""
    disruptive: ClassVar[bool]
    """False for what is part of the plan, such as a workload that arrives: it opens no ``fault`` phase."""
    fidelity: ClassVar[Mapping[str, Fidelity]]
    """By target; a target that is not named is unsupported."""

    def pick(self, fleet: Sequence[FleetNode], rng: Random) -> tuple[str, ...]:
        """The targets. Pure, so that a plan can be printed before anything is broken."""
        ...

    def longest_s(self) -> float:
        """Scenario seconds after which every step must be over; the caller adds its own slack."""
        ...

    async def inject(self, ground: Ground, fault_id: str, targets: Sequence[str]) -> None:
        """Makes the change; its undo is on disk before."""
        ...

    async def observe(self, ground: Ground, targets: Sequence[str]) -> str:
        """What was seen of it; raises ``NotObserved`` when nothing was in time."""
        ...

    async def outlast(self, ground: Ground, fault_id: str, targets: Sequence[str]) -> str | None:
        """Waits until the fault's own course is over and says what ended it; None where only heal ends it."""
        ...

    @staticmethod
    async def heal(ground: Ground, undo: Undo) -> str:
        """Undoes one journaled change of this fault and says what it found; safe twice and after a half-done inject."""
        ...


def fidelity_on(fault: type[Fault], target: str) -> Fidelity:
    """What a fault is on embedded it is in virtual time, too, unless it says otherwise."""
    known = fault.fidelity.get(target)
    if known is None and target == VIRTUAL:
        known = fault.fidelity.get(EMBEDDED)
    return known or Fidelity.UNSUPPORTED
