"""An addon that does not come up is told in one error with its program's own words, as any program is."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from programs import python_program

from fakes.clock import WallClock
from fakes.kube.local import LocalKube
from fakes.kube.store import Store
from harness.errors import TargetError
from harness.kube.port import NAMESPACE, SECRET
from harness.stack import addons
from harness.stack.addons import running_addons
from harness.stack.certificates import Authority, Pair
from harness.stack.control_plane_flags import Layout
from harness.stack.description import FILE, Described
from harness.stack.find import Binaries, Binary
from harness.stack.installing import create
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


HOOKS = """apiVersion: v1
kind: Service
metadata: {name: no-webhook-but-in-the-same-file}
"""
SERVES = """
import http.server, socket, sys, threading, time
class Server(http.server.HTTPServer):
    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
health, hooks = (int(word) for word in sys.argv[1:3])
threading.Thread(target=Server(("127.0.0.1", health), Answer).serve_forever, daemon=True).start()
"""
HOOKS_LATER = (
    SERVES + "time.sleep(1)\nprint('hooks', flush=True)\nServer(('127.0.0.1', hooks), Answer).serve_forever()\n"
)
HOOKS_NEVER = SERVES + "time.sleep(600)\n"


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


async def test_an_object_that_is_refused_is_named(tmp_path: Path) -> None:
    kube = LocalKube(Store(WallClock(datetime(2026, 1, 1, tzinfo=UTC)), Random(1)), "stack")
    with pytest.raises(TargetError, match=r"^the API server does not take Namespace without a name: 4\d\d "):
        await create(kube, NAMESPACE, {"metadata": {}})
    await create(kube, NAMESPACE, {"metadata": {"name": "a"}})
    await create(kube, NAMESPACE, {"metadata": {"name": "a"}})  # is there already


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


async def come_up_with_webhooks(tmp_path: Path, program: str) -> str:
    """What the program had printed by the time it was up."""
    kept = tmp_path / "cache" / "objects" / "x"
    kept.mkdir(parents=True)
    (kept / "hooks.yaml").write_text(HOOKS)
    more = "webhooks: {files: [hooks.yaml], service: x-hooks, port: hooks}\n"
    text = DESCRIPTION.replace("secrets: {x-cert: certs}\n", "").replace("WITHIN", "60")
    text = text.replace("cmd, health", 'cmd, args: ["${port:health}", "${port:hooks}"], health')
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / FILE).write_text(text + more)
    (folder / "go.mod").write_text("require example.org/x v1.2.3\n")
    plane = control_plane(tmp_path / "plane")
    kube = LocalKube(Store(WallClock(datetime(2026, 1, 1, tzinfo=UTC)), Random(1)), "stack")
    binaries = Binaries({"x": Binary("x", python_program(tmp_path / "bin", "x", program), "1.2.3")})
    addons_ = [Described(folder)]
    try:
        async with running_addons(addons_, binaries, plane, kube, time_scale=1, objects=tmp_path / "cache"):
            return (tmp_path / "plane" / "logs" / "x.log").read_text()
    finally:
        await plane.services.stop()


async def test_one_is_up_when_its_webhooks_listen_and_not_when_it_says_that_it_is_ready(tmp_path: Path) -> None:
    assert "hooks" in await come_up_with_webhooks(tmp_path, HOOKS_LATER)


async def test_webhooks_that_never_listen_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addons, "WEBHOOKS_WITHIN_S", 0.5)
    with pytest.raises(TargetError, match=r"the webhooks of x did not listen within 0.5 s"):
        await come_up_with_webhooks(tmp_path, HOOKS_NEVER)


NEEDS_ITS_SECRET = SERVES.replace("health, hooks", "open(sys.argv[3]).read()\nhealth, hooks") + "time.sleep(600)\n"


async def test_the_programs_after_the_first_find_the_secret_that_it_fills(tmp_path: Path) -> None:
    """The first serves before it has filled it, as KEDA's operator does."""
    text = DESCRIPTION.replace("cmd, health", 'cmd, args: ["${port:health}", "0"], health').replace("WITHIN", "60")
    text += (
        '  - {name: y, package: example.org/x/other, args: ["${port:other}", "0", "${secret:x-cert}/tls.crt"],'
        ' health: "http://${host}:${port:other}/"}\n'
    )
    folder, plane = tmp_path / "x", control_plane(tmp_path / "plane")
    folder.mkdir()
    (folder / FILE).write_text(text)
    (folder / "go.mod").write_text("require example.org/x v1.2.3\n")
    kube = LocalKube(Store(WallClock(datetime(2026, 1, 1, tzinfo=UTC)), Random(1)), "stack")
    bodies = {"x": SERVES + "time.sleep(600)\n", "y": NEEDS_ITS_SECRET}
    programs = {name: python_program(tmp_path / "bin", name, body) for name, body in bodies.items()}
    binaries = Binaries({name: Binary(name, path, "1.2.3") for name, path in programs.items()})

    async def fill_once_the_first_serves() -> None:
        async with asyncio.timeout(60):
            while "GET /readyz" not in read(tmp_path / "plane" / "logs" / "x.log"):
                await asyncio.sleep(0.05)
        await asyncio.sleep(2)  # for one that is started too early to have ended by then
        await kube.patch(SECRET, "x-cert", {"data": {"tls.crt": "eA=="}}, "x-system")

    filling = asyncio.create_task(fill_once_the_first_serves())
    try:
        async with running_addons([Described(folder)], binaries, plane, kube, time_scale=1) as standing:
            assert standing.names == ["x"]
    finally:
        await filling
        await plane.services.stop()


def read(file: Path) -> str:
    return file.read_text() if file.exists() else ""
