"""What faults stand on during a run. They are asynchronous and know only the ports here, so they run under a virtual
clock as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harness.errors import TargetError
from harness.kube.port import Json, Kube, Resource

if TYPE_CHECKING:
    from harness.faults.senses import Senses
    from harness.faults.undo import Undo, UndoJournal
    from harness.faults.world_control import WorldControl


class NotObserved(TargetError):
    """The injection was accepted, but its effect was not seen in time."""


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

    def scenario_s(self, clock_ns: int) -> float: ...


@dataclass(frozen=True, slots=True)
class Patience:
    """How long faults wait, in clock seconds, beyond what the scenario itself asks for."""

    poll_s: float = 0.1
    slack_s: float = 5.0
    """Granted on top of every scaled deadline, for a machine that is busy."""


Objects = Sequence[tuple[Resource, Json]]


@dataclass(frozen=True, slots=True)
class Ground:
    """What a fault stands on during one run."""

    target: str
    namespace: str
    kube: Kube
    clock: Clock
    undo: UndoJournal
    run_dir: Path
    selector: str = ""
    """Of the workload's pods."""
    world: WorldControl | None = None
    """The switches of what the harness itself emulates: nodes, cloud, metrics, gateway."""
    senses: Senses | None = None
    """How the service and its metrics are looked at."""
    load: LoadControl | None = None
    """How the load generator is stopped and resumed; None: it is a process of this run, known by its folder."""
    manifest: Callable[[str], Objects] = lambda name: ()
    """The objects of a manifest, by the name that the experiment writes it with."""
    only_of: str = ""
    """Restores only fields that this field manager wrote: for a journal that somebody else may have written. Empty:
    not asked, for the journal lay on our own disk."""
    stack: tuple[str, ...] = ()
    """The real components that run beside the target's own."""
    label: str | None = None
    """Names the run on what it creates; None: the folder's name and a hash of its path."""
    patience: Patience = field(default_factory=Patience)

    def within_s(self, scenario_s: float) -> float:
        """Clock seconds to wait for something that should take ``scenario_s`` at most."""
        return self.clock.clock_s(scenario_s) + self.patience.slack_s
