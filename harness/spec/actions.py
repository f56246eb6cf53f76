"""Arguments of our Chaos Toolkit actions. All times are scenario seconds; ``after_s`` counts from the load's start."""

from __future__ import annotations

from typing import ClassVar

from harness.spec.model import Count, LabelSelector, Seconds, SecondsFromZero, SpecModel, Text

ACTIONS_MODULE = "harness.run.chaos.actions"


class ActionArguments(SpecModel):
    """What any of our actions takes. ``disruptive`` says whether it opens the phase ``fault``."""

    disruptive: ClassVar[bool] = True
    is_fault: ClassVar[bool] = True
    """False for ``heal``, which undoes faults and has no place in the plan."""

    @property
    def starts_s(self) -> float | None:
        """Scenario second at which it begins, or None for an action that begins when its turn comes."""
        return None

    @property
    def ends_s(self) -> float | None:
        """Scenario second at which its own course is over."""
        return self.starts_s


class NodePick(SpecModel):
    """Which nodes a fault may hit, and how many of them."""

    selector: LabelSelector
    count: Count = 1


class SpotInterruption(ActionArguments):
    """The cloud takes ``count`` instances away, ``notice_s`` after saying so."""

    after_s: SecondsFromZero
    nodes: NodePick
    notice_s: Seconds

    @property
    def starts_s(self) -> float:
        return self.after_s

    @property
    def ends_s(self) -> float:
        return self.after_s + self.notice_s


class ApplyObjects(ActionArguments):
    """A workload arrives by plan: the objects of one manifest file."""

    disruptive: ClassVar[bool] = False

    after_s: SecondsFromZero
    manifest: Text

    @property
    def starts_s(self) -> float:
        return self.after_s


class PauseLoad(ActionArguments):
    """The load process is stopped for ``hold_s``: a fault of the harness itself, to prove that it is noticed."""

    disruptive: ClassVar[bool] = False

    after_s: SecondsFromZero
    hold_s: Seconds

    @property
    def starts_s(self) -> float:
        return self.after_s

    @property
    def ends_s(self) -> float:
        return self.after_s + self.hold_s


class Heal(ActionArguments):
    """Undoes whatever the harness has changed so far. Idempotent."""

    disruptive: ClassVar[bool] = False
    is_fault: ClassVar[bool] = False


ACTIONS: dict[str, type[ActionArguments]] = {
    "spot_interruption": SpotInterruption,
    "apply_objects": ApplyObjects,
    "pause_load": PauseLoad,
    "heal": Heal,
}
