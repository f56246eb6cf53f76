"""All scenarios, in the order in which they are shown."""

from __future__ import annotations

from bothsides.scenarios import autoscaling, budgets, endings, nodes, rollouts, scheduling
from bothsides.stage import Scenario

MODULES = (rollouts, autoscaling, budgets, nodes, scheduling, endings)
SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for module in MODULES for scenario in module.SCENARIOS}
