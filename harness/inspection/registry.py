"""Every rule there is, by its id. The command, accepting, the documentation and JUnit's cases come from here."""

from __future__ import annotations

from harness.inspection.rule import Rule
from harness.inspection.rules.accepts import ACCEPTS
from harness.inspection.rules.budgets import BUDGETS
from harness.inspection.rules.fields import FIELDS
from harness.inspection.rules.gangs import GANGS
from harness.inspection.rules.metrics import METRICS
from harness.inspection.rules.nodes import NODES
from harness.inspection.rules.probes import PROBES
from harness.inspection.rules.termination import TERMINATION
from harness.inspection.rules.writers import WRITERS

RULES: dict[str, Rule] = {
    rule.id: rule for rule in (*TERMINATION, *PROBES, *METRICS, *WRITERS, *BUDGETS, *NODES, *GANGS, *FIELDS, *ACCEPTS)
}
