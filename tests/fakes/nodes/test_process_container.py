"""Containers that are real processes: their port, probes, log, signals, and that nothing of them stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys

import pytest
from seen import until

from fakes.config import ProcessImage
from fakes.control.pods import PodTrouble, meddled
from fakes.nodes.process_container import ProcessContainer, command_line
from harness.kube.port import Json

DEADLINE_S = 30.0
POD: Json = {"metadata": {"name": "web-1"}}
SERVER = """
import http.server, os, signal, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
def stop(*_):
    print("asked to stop", flush=True)
    threading.Thread(target=server.shutdown).start()
signal.signal(signal.SIGTERM, stop)
print("ready", os.environ["COLOUR"], *sys.argv[2:], flush=True)
server.serve_forever()
sys.exit(7)
"""
TALKER = """
import http.server, os, subprocess, sys, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(os.getpid(), child.pid, flush=True)
while True:
    print("still here", flush=True)
    time.sleep(0.02)
"""
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("child", child.pid, flush=True)
time.sleep(60)
"""


async def start(program: str, *more: str) -> tuple[ProcessContainer, list[str]]:
    lines: list[str] = []
    image = ProcessImage("web", (sys.executable, "-c", program, "{port}", *more), (("COLOUR", "blue"),))
    container: Json = {"name": "web", "args": ["--a", "b"], "env": [{"name": "OTHER", "value": "1"}]}
    process = ProcessContainer(POD, container, image, lines.append)
    await process.start()
    return process, lines


def state_of(pid: int) -> str:
    """The kernel's letter; empty for none."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]
    return ""


def is_there(pid: int) -> bool:
    """A zombie counts as gone: whoever should reap it is another's business."""
    return state_of(pid) not in ("", "Z")


def test_what_stands_for_what_in_a_command_line() -> None:
    words = command_line(["serve", "--port={port}", "{args}", "{pod}"], ["--x", "1"], port=80, pod="p")
    assert words == ["serve", "--port=80", "--x", "1", "p"]


async def test_a_process_serves_answers_probes_and_ends_as_it_likes_after_sigterm() -> None:
    process, lines = await start(SERVER, "{args}")
    await until(lambda: lines, "its first line")
    assert lines == ["ready blue --a b"]
    assert await process.probe("/health") == 200
    assert await process.probe("/nope") == 404
    process.terminate()
    async with asyncio.timeout(DEADLINE_S):
        assert await process.wait() == 7
    assert lines[-1] == "asked to stop"
    assert await process.probe("/health") is None


async def test_a_kill_takes_all_that_it_started() -> None:
    process, lines = await start(STUBBORN)
    await until(lambda: lines, "its first line")
    child = int(lines[0].split()[1])
    process.terminate()  # ignored
    assert is_there(child)
    process.kill()
    async with asyncio.timeout(DEADLINE_S):
        assert await process.wait() == 137
    await until(lambda: not is_there(child), "the child is gone")


async def test_it_stands_still_with_its_machine_and_goes_on_with_it() -> None:
    """All that it started, too; what was asked meanwhile is answered afterwards."""
    process, lines = await start(TALKER)
    await until(lambda: len(lines) > 2, "it talks")
    pids = [int(pid) for pid in lines[0].split()]
    process.freeze()
    await until(lambda: [state_of(pid) for pid in pids] == ["T", "T"], "both stand still")
    asked = asyncio.ensure_future(process.probe("/health"))
    said = len(lines)
    await asyncio.sleep(0.3)
    assert len(lines) == said and not asked.done()
    process.thaw()
    async with asyncio.timeout(DEADLINE_S):
        assert await asked == 200
    await until(lambda: len(lines) > said, "it talks again")
    process.freeze()
    process.kill()
    async with asyncio.timeout(DEADLINE_S):
        assert await process.wait() == 137
    await until(lambda: not any(map(is_there, pids)), "both are gone")
    process.thaw()  # nobody is there to hear it


async def test_with_its_node_it_stands_still_and_what_else_befalls_pods_befalls_it() -> None:
    trouble = PodTrouble()
    trouble.freeze("n", True)
    process, lines = await start(TALKER)
    placed = {"metadata": {"name": "web-1", "namespace": "default"}, "spec": {"nodeName": "n"}}
    container = meddled(placed, process, trouble)
    await until(
        lambda: process.pid and state_of(_child_of(process.pid)) == "T", "it begins on a node that stands still"
    )
    trouble.freeze("n", False)
    await until(lambda: len(lines) > 2, "it talks")
    trouble.unready.add("default/web-1")
    assert container.probe("/health") == 503
    assert trouble.with_metrics == set()  # those are its own
    trouble.fail_metrics("default/web-1", "error")
    trouble.crash("default/web-1")
    async with asyncio.timeout(DEADLINE_S):
        assert await container.wait() == 1
    assert trouble.servers == {}


def _child_of(pid: int) -> int:
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return int((children.read().split() or ["0"])[0])


async def test_nothing_outlives_its_node() -> None:
    """As when the node's own process is killed: the pipe ends, and nobody says a word."""
    program = (
        "import asyncio, sys\n"
        "from fakes.config import ProcessImage\n"
        "from fakes.nodes.process_container import ProcessContainer\n"
        "async def main():\n"
        "    image = ProcessImage('web', (sys.executable, '-c', sys.argv[1], '{port}'))\n"
        "    p = ProcessContainer({'metadata': {'name': 'p'}}, {}, image, lambda line: print(line, flush=True))\n"
        "    await p.start()\n"
        "    await p.wait()\n"
        "asyncio.run(main())\n"
    )
    node = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, STUBBORN, stdout=asyncio.subprocess.PIPE
    )  # fmt: skip
    assert node.stdout is not None
    async with asyncio.timeout(DEADLINE_S):
        child = int((await node.stdout.readline()).split()[1])
    node.send_signal(signal.SIGKILL)
    await node.wait()
    await until(lambda: not is_there(child), "the child is gone")


async def test_a_program_that_is_not_there_says_so_in_the_log() -> None:
    lines: list[str] = []
    image = ProcessImage("web", ("/no/such/program", "{port}"))
    process = ProcessContainer(POD, {}, image, lines.append)
    await process.start()
    async with asyncio.timeout(DEADLINE_S):
        assert await process.wait() == 127
    assert lines == ["/no/such/program: No such file or directory"]


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no /dev/shm here")
async def test_shared_memory_that_it_mapped_is_removed_with_it() -> None:
    program = (
        "import mmap, os, time\n"
        "name = f'/dev/shm/psm_test_{os.getpid()}'\n"
        "fd = os.open(name, os.O_RDWR | os.O_CREAT); os.ftruncate(fd, 4096); m = mmap.mmap(fd, 4096)\n"
        "print(name, flush=True); time.sleep(60)\n"
    )
    process, lines = await start(program)
    await until(lambda: lines, "its first line")
    assert os.path.exists(lines[0])
    process.kill()
    async with asyncio.timeout(DEADLINE_S):
        await process.wait()
    assert not os.path.exists(lines[0])
