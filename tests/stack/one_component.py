"""One real component on a control plane of its own, for scripts that ask what it does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from harness.errors import HarnessError
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.description import in_order
from harness.stack.find import find_binaries
from harness.stack.find_addons import find_addons
from harness.targets.controlplane.target import ControlPlaneTarget
from harness.targets.wanted import Places, Wanted, two_empty_nodes, with_stack

CANNOT = 77


def target_of(name: str, folder: Path) -> ControlPlaneTarget:
    described = in_order([name])
    wanted = with_stack(Wanted(two_empty_nodes(1)), [name])
    places = Places(folder / "target", folder / "logs")
    return ControlPlaneTarget(wanted, find_binaries(CONTROL_PLANE), places, described, find_addons(described))


def cannot_run(names: Iterable[str]) -> int:
    """Says why these cannot be brought up here; the exit status that is right then, and 0 where they can."""
    try:
        find_binaries(CONTROL_PLANE)
        find_addons(in_order(names))
    except HarnessError as error:
        print(f"cannot run: {error}", file=sys.stderr)
        return 1 if os.environ.get("REQUIRE") == "1" else CANNOT
    return 0
