"""What the tests with a real control plane share. Without the programs they are skipped, and say how to get them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness.errors import TargetError
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.find import Binaries, find_binaries
from harness.stack.kubernetes import ControlPlane, running_control_plane


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    try:
        return find_binaries(CONTROL_PLANE)
    except TargetError as missing:
        if os.environ.get("REQUIRE") == "1":
            raise
        pytest.skip(str(missing))


@pytest.fixture
async def control_plane(binaries: Binaries, tmp_path: Path) -> AsyncIterator[ControlPlane]:
    async with running_control_plane(binaries, tmp_path / "control-plane") as running:
        yield running
