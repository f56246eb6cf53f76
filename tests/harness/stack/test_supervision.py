"""Programs that end by design, unasked, or because somebody wanted it; and what that looks like over HTTP."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from programs import python_program

from harness.errors import TargetError
from harness.stack.control import serving_control
from harness.stack.ports import HeldPorts
from harness.stack.services import Health, Launch, Services

SERVER = """
import http.server, pathlib, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *args): pass
class Server(http.server.HTTPServer):
    allow_reuse_address = True
"""
SERVES = SERVER + 'Server(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()\n'
SICK = """
import http.server, pathlib, sys
class Answer(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Answer.asked += 1
        if Answer.asked == 2:  # the first answer has arrived then
            pathlib.Path(sys.argv[2]).touch()
        self.send_response(503)
        self.end_headers()
    def log_message(self, *args): pass
class Server(http.server.HTTPServer):
    allow_reuse_address = True
Server(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
ENDS_ONCE = (
    SERVER
    + """
made = pathlib.Path(sys.argv[0] + ".certificate")
if not made.exists():
    made.touch()
    print("exiting so pod can be restarted", flush=True)
    sys.exit(0)
Server(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
)


def launch(tmp_path: Path, name: str, body: str, *args: str, exits: int = 0, within_s: float = 60) -> Launch:
    program = python_program(tmp_path / "bin", name, body)
    health = Health(f"http://127.0.0.1:{args[0]}/")
    return Launch(name, (str(program), *args), health, exits=exits, within_s=within_s)


async def test_one_that_ends_once_by_design_is_started_again(tmp_path: Path) -> None:
    services = Services(tmp_path / "logs")
    with HeldPorts() as ports:
        await services.start(launch(tmp_path, "keda-like", ENDS_ONCE, str(ports.take()), exits=1))
        assert services.dead() is None
        assert "exiting so pod can be restarted" in (tmp_path / "logs" / "keda-like.log").read_text()
        services.named("keda-like").child.kill()
        await services.named("keda-like").child.wait()
        dead = services.dead()
        assert dead is not None and dead.how_it_ended() == "keda-like was killed by SIGKILL", "once, not twice"
        await services.stop()


async def test_one_that_may_not_end_is_dead(tmp_path: Path) -> None:
    services = Services(tmp_path / "logs")
    with HeldPorts() as ports, pytest.raises(TargetError, match="exited with code 0") as failed:
        await services.start(launch(tmp_path, "plain", ENDS_ONCE, str(ports.take())))
    assert "exiting so pod can be restarted" in str(failed.value)
    await services.stop()


async def test_one_that_never_becomes_healthy_is_told_with_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is over once it has answered, however long a crowded machine took to start it."""
    services = Services(tmp_path / "logs")
    loop = asyncio.get_running_loop()
    answered, now_s = tmp_path / "answered", loop.time
    monkeypatch.setattr(loop, "time", lambda: now_s() + (3600 if answered.exists() else 0))
    with HeldPorts() as ports, pytest.raises(TargetError, match=r"sick did not serve after 600 s .*answered 503"):
        await services.start(launch(tmp_path, "sick", SICK, str(ports.take()), str(answered), within_s=600))
    await services.stop()


async def test_stopped_over_http_is_not_dead_and_started_again_serves(tmp_path: Path) -> None:
    services = Services(tmp_path / "logs")
    with HeldPorts() as ports:
        await services.start(launch(tmp_path, "one", SERVES, str(ports.take())))
        async with serving_control(services) as url, httpx.AsyncClient(trust_env=False, timeout=60) as client:
            (killed,) = (await client.post(f"{url}/programs/one/kill")).json()["programs"]
            assert (killed["running"], killed["halted"]) == (False, True)
            assert services.dead() is None
            (again,) = (await client.post(f"{url}/programs/one/start")).json()["programs"]
            assert (again["running"], again["halted"]) == (True, False)
            assert (await client.post(f"{url}/programs/two/stop")).json() == {
                "error": "no program 'two'; there is: one"
            }
            assert (await client.post(f"{url}/programs/one/maim")).status_code == 404
        services.named("one").child.kill()
        await asyncio.wait_for(services.named("one").child.wait(), 20)
        assert services.dead() is not None, "nobody asked for that"
        await services.stop()
