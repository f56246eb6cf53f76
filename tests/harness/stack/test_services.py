"""Programs are waited for, and one that does not come up or ends unasked is told with its own words."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import python_program

from harness.errors import TargetError
from harness.stack.ports import HeldPorts
from harness.stack.services import Health, Launch, Services

SERVER = """
import http.server, socket, sys
class Answer(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Answer.asked += 1
        self.send_response(200 if Answer.asked > 2 else 500)
        self.end_headers()
        if self.path == "/end": sys.exit(3)
class Server(http.server.HTTPServer):
    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()
print("listening", flush=True)
Server(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
BROKEN = "import sys\nprint('no such flag: --frobnicate', flush=True)\nsys.exit(3)\n"


def launch(tmp_path: Path, name: str, body: str, port: int) -> Launch:
    program = python_program(tmp_path / "bin", name, body)
    return Launch(name, (str(program), str(port)), Health(f"http://127.0.0.1:{port}/"))


async def test_started_means_that_it_serves_and_stopped_that_it_is_gone(tmp_path: Path) -> None:
    services = Services(tmp_path / "logs")
    with HeldPorts() as ports:
        await services.start(*(launch(tmp_path, name, SERVER, ports.take()) for name in ("one", "two")))
        assert sorted(services.pids) == ["one", "two"]
        assert services.dead() is None
        assert (tmp_path / "logs" / "one.log").read_text().startswith("listening")
        await services.stop()
    assert services.pids == {}


async def test_one_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    services = Services(tmp_path / "logs")
    with HeldPorts() as ports, pytest.raises(TargetError) as failed:
        await services.start(launch(tmp_path, "fine", SERVER, ports.take()), launch(tmp_path, "broken", BROKEN, 1))
    assert "broken exited with code 3" in str(failed.value)
    assert "no such flag: --frobnicate" in str(failed.value)
    assert str(tmp_path / "logs" / "broken.log") in str(failed.value)
    dead = services.dead()
    assert dead is not None and dead.name == "broken"
    await services.stop()


def test_a_held_port_is_given_to_nobody_else() -> None:
    with HeldPorts() as held, HeldPorts() as others:
        mine = {held.take() for _ in range(50)}
        assert mine.isdisjoint(others.take() for _ in range(500))
        assert len(mine) == 50
