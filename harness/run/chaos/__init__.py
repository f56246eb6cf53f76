"""The Chaos Toolkit extension: thin, synchronous, onto ``harness.faults``. Nothing else imports chaoslib."""

from __future__ import annotations

from typing import Any


def discover(discover_system: bool = True) -> dict[str, Any]:
    """What ``chaos discover`` lists of us."""
    # Only here: the supervisor imports this package for its command and needs no chaoslib, and every import before the
    # command has its handlers (`harness.cli`) is a moment in which Ctrl-C shows a traceback.
    from importlib.metadata import version

    from harness.run.chaos.lib import discover_actions, discover_probes, initialize_discovery_result

    discovery: dict[str, Any] = initialize_discovery_result("gpu-harness", version("gpu-harness"), "kubernetes")
    discovery["activities"].extend(discover_actions("harness.run.chaos.actions"))
    discovery["activities"].extend(discover_probes("harness.run.chaos.probes"))
    return discovery
