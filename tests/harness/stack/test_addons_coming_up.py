"""An addon that does not come up is told in one error with its program's own words, as any program is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from programs import python_program

from fakes.clock import WallClock
from fakes.kube.local import LocalKube
from fakes.kube.store import Store
from harness.errors import TargetError
from harness.stack import addons
from harness.stack.addons import running_addons
from harness.stack.certificates import Authority, Pair
from harness.stack.control_plane_flags import Layout
from harness.stack.description import FILE, Described
from harness.stack.find import Binaries, Binary
from harness.stack.kubernetes import ControlPlane
from harness.stack.services import Services

DESCRIPTION = """about: x
source: example.org/x
page: https://example.org
install: kubectl apply
finds: xs.example.org
namespace: x-system
secrets: {x-cert: certs}
programs:
  - {name: x, package: example.org/x/cmd, health: "http://${host}:${port:health}/readyz", starts_within_s: WITHIN}
"""
ENDS = "import sys\nprint('no such flag: --frobnicate', flush=True)\nsys.exit(3)\n"
NEVER_SERVES = "import time\ntime.sleep(600)\n"


def described(folder: Path, within_s: int) -> Described:
    folder.mkdir()
    (folder / FILE).write_text(DESCRIPTION.replace("WITHIN", str(within_s)))
    (folder / "go.mod").write_text("require example.org/x v1.2.3\n")
    return Described(folder)


def control_plane(folder: Path) -> ControlPlane:
    """One of which only the services are real: nothing here asks an API server over the network."""
    folder.mkdir()
    authority, nothing = Authority("ca", folder), folder / "nothing"
    layout = Layout(folder, {}, nothing, nothing, nothing, *[Pair(nothing, nothing)] * 4, tokens=nothing)
    return ControlPlane(
        "https://127.0.0.1:1", "", nothing, authority.certificate, folder, layout, Services(folder / "logs"), authority
    )


async def come_up(tmp_path: Path, program: str, within_s: int = 60) -> None:
    plane = control_plane(tmp_path / "plane")
    wall = WallClock(datetime(2026, 1, 1, tzinfo=UTC))
    kube = LocalKube(Store(wall, Random(1)), "stack")
    binaries = Binaries({"x": Binary("x", python_program(tmp_path / "bin", "x", program), "1.2.3")})
    try:
        async with running_addons([described(tmp_path / "x", within_s)], binaries, plane, kube, time_scale=1):
            pass
    finally:
        await plane.services.stop()


async def test_a_program_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"(?s)x exited with code 3.*no such flag: --frobnicate"):
        await come_up(tmp_path, ENDS)


async def test_a_program_that_never_serves_is_told_and_not_its_empty_secret(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="x did not serve after 1 s"):
        await come_up(tmp_path, NEVER_SERVES, within_s=1)


async def test_a_secret_that_stays_empty_is_told_while_its_program_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addons, "SECRET_WITHIN_S", 0.3)
    with pytest.raises(TargetError, match="x put nothing into its Secret x-cert"):
        await come_up(tmp_path, NEVER_SERVES)
