"""A program of the target is halted by a knob of its own and started again by the undo that every knob has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import pytest

sys.path.append(str(Path(__file__).parents[1] / "stack"))

from programs import python_program

from harness.errors import TargetError
from harness.faults.programs import HALTED, ProgramsWorld
from harness.faults.undo import ResetKnob
from harness.faults.undoing import by_hand
from harness.faults.world_control import TargetGone, WorldControl
from harness.stack.control import serving_control
from harness.stack.ports import HeldPorts
from harness.stack.services import Health, Launch, Services

SERVER = """
import http.server, socket, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
class Server(http.server.HTTPServer):
    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()
Server(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


class Emulated:
    """What stands behind: it hears of every other knob."""

    def __init__(self) -> None:
        self.turned: list[tuple[str, str]] = []

    async def turn(self, knob: str, target: str, value: object) -> None:
        self.turned.append((knob, target))


@pytest.mark.parametrize(("how", "found"), [("stop", "stop"), ("kill", "stop"), ("freeze", "freeze")])
async def test_a_halted_program_is_gone_until_the_knob_is_turned_back(tmp_path: Path, how: str, found: str) -> None:
    services, behind = Services(tmp_path / "logs"), Emulated()
    with HeldPorts() as ports:
        port = ports.take()
        program = str(python_program(tmp_path / "bin", "karpenter", SERVER))
        await services.start(Launch("karpenter", (program, str(port)), Health(f"http://127.0.0.1:{port}/")))
        try:
            async with serving_control(services) as url:
                world = ProgramsWorld(cast(WorldControl, behind), url)
                assert await world.knob(HALTED, "karpenter") is None
                await world.turn(HALTED, "karpenter", how)
                assert await world.knob(HALTED, "karpenter") == found
                assert services.dead() is None, "it was halted on purpose"
                await world.turn(HALTED, "karpenter", None)
                await world.turn(HALTED, "karpenter", None)  # twice is once
                assert await world.knob(HALTED, "karpenter") is None
                with pytest.raises(TargetGone, match="no program 'kueue'; there is: karpenter"):
                    await world.knob(HALTED, "kueue")
                with pytest.raises(TargetError):
                    await world.turn(HALTED, "kueue", "kill")
                await world.turn("device.unhealthy", "spot-1", 1)
                assert behind.turned == [("device.unhealthy", "spot-1")]
        finally:
            await services.stop()


def test_a_person_is_told_how_to_start_it() -> None:
    assert "/programs/kueue/start" in by_hand(ResetKnob(HALTED, "kueue", None))
