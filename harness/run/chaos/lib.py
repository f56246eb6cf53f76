"""What we take of chaoslib. It ships no types, so this is the one place where the type checker is told so."""

from __future__ import annotations

from chaoslib.discovery.discover import (  # type: ignore[import-untyped]  # no stubs, no py.typed
    discover_actions,
    discover_probes,
    initialize_discovery_result,
)
from chaoslib.exceptions import (  # type: ignore[import-untyped]  # no stubs, no py.typed
    ActivityFailed,
    InterruptExecution,
)

__all__ = [
    "ActivityFailed",
    "InterruptExecution",
    "discover_actions",
    "discover_probes",
    "initialize_discovery_result",
]
