"""Our Chaos Toolkit actions, as experiments may name them: every fault of the registry, and ``heal``.

All times are scenario seconds; ``after_s`` counts from the load's start.
"""

from __future__ import annotations

from harness.faults.registry import FAULTS
from harness.spec.model import SpecModel

ACTIONS_MODULE = "harness.run.chaos.actions"


class Heal(SpecModel):
    """Undoes whatever the harness has changed so far. Idempotent."""


ACTIONS: dict[str, type[SpecModel]] = {**FAULTS, "heal": Heal}
