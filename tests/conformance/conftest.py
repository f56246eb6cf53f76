"""``make conformance`` plays every case, ``make test`` a part of them where the binaries are at hand."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from case import Case
from compare import Outcome, compare
from real import real_server
from wire_cases import areas

from harness.errors import TargetError
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.find import Binaries, find_binaries

QUICK_EVERY = 5
"""Without ``CONFORMANCE=all`` each area plays one case in so many: all of them are too long for every test run."""


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Outcome]]:
    """All cases at once: they share the two servers, and each has a namespace of its own."""
    try:
        binaries = find_binaries(CONTROL_PLANE)
    except TargetError as missing:
        if os.environ.get("REQUIRE") == "1":
            raise
        pytest.skip(str(missing))
    every = 1 if os.environ.get("CONFORMANCE") == "all" else QUICK_EVERY
    chosen = [(area, case) for area, cases in areas().items() for case in cases[::every]]
    folder = tmp_path_factory.mktemp("conformance") / "control-plane"
    played = asyncio.run(play([case for _, case in chosen], binaries, folder))
    found: dict[str, list[Outcome]] = {area: [] for area in areas()}
    for (area, _), outcome in zip(chosen, played, strict=True):
        found[area].append(outcome)
    return found


async def play(cases: list[Case], binaries: Binaries, folder: Path) -> list[Outcome]:
    async with real_server(binaries, folder) as server:
        return await compare(cases, server)
