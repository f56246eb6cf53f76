"""A quick subset of the scenarios on a real control plane, when its programs are there. All of them: make behaviour."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bothsides.catalogue import SCENARIOS
from bothsides.judge import judge_real

from harness.errors import TargetError
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.find import Binaries, find_binaries


@pytest.fixture
def binaries() -> Binaries:
    try:
        return find_binaries(CONTROL_PLANE)
    except TargetError as missing:
        if os.environ.get("REQUIRE") == "1":
            raise
        pytest.skip(str(missing))


async def test_the_quick_subset_agrees(binaries: Binaries, tmp_path: Path):
    quick = [s for s in SCENARIOS.values() if s.quick]
    said: list[str] = []
    judged = await judge_real(quick, binaries, tmp_path, said.append)
    differences = [d for each in judged if not each.agrees for d in each.differences]
    assert not differences, "\n".join([*differences, *said])
    if len(judged) < len(quick):
        pytest.skip(f"not judged, for the machine was too crowded: {'; '.join(said)}")
