"""How many tokens a fake model server streams per CPU second: one event and one write each, never two together.

``python benchmarks/model_server.py`` measures one server with 500 connections (wanted: 25,000 tokens per CPU second),
then fifty servers in one process with ten each, paced at 10,000 tokens per second together (wanted: one core does it).
CPU is that of the process with the servers; who reads is another. ``--tokens N`` is what each connection asks for.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import resource
import selectors
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from fakes.clock import WallClock
from fakes.timing import Timing
from fakes.vllm.flags import parse_flags
from fakes.vllm.presets import LatencyProfile
from fakes.vllm.server import ModelServer

READ_BYTES = 1 << 20
DEADLINE_S = 240


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    replicas: int
    connections: int
    """Of each replica."""
    step_s: float
    wanted_per_cpu_s: int


CASES = (
    Case("one server, 500 connections", 1, 500, 0.010, 25_000),
    Case("50 servers, 10 connections each, 10,000 tokens/s", 50, 10, 0.050, 10_000),
)


def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def serve(case: Case) -> None:
    """Prints the ports, then, whenever a line comes in, the CPU seconds so far; ends with its input."""
    flags = parse_flags(["--served-model-name", "m", "--max-num-seqs", str(case.connections)])
    profile = LatencyProfile(case.step_s, 0.0, 0.0, 0.0, 100_000, case.connections, 8192)
    servers = []
    for i in range(case.replicas):
        server = ModelServer(flags, profile, timing=Timing(), rng=Random(i), wall=WallClock(datetime.now(UTC)))
        servers.append(server.bind())
        await server.listen()
    print(json.dumps([port for _, port in servers]), flush=True)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(cpu_s(), flush=True)


def request(tokens: int) -> bytes:
    body = {
        "model": "m", "messages": [{"role": "user", "content": "hello there"}], "max_tokens": tokens,
        "ignore_eos": True, "stream": True,
    }  # fmt: skip
    text = json.dumps(body).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(text)}\r\n\r\n".encode() + text


class Reader:
    """One connection: counts the ends of events in what it reads."""

    def __init__(self, port: int, tokens: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.sendall(request(tokens))
        self.sock.setblocking(False)
        self.events = 0
        self._last = b""

    def read(self) -> bool:
        """Whether the stream has ended."""
        with contextlib.suppress(BlockingIOError):
            data = self.sock.recv(READ_BYTES)
            self.events += (self._last[-1:] + data).count(b"\n\n")
            self._last = (self._last + data)[-8:]
            return not data or self._last.endswith(b"0\r\n\r\n")
        return False


def read_all(ports: list[int], case: Case, tokens: int) -> int:
    """Returns the number of events with text."""
    readers = [Reader(port, tokens) for port in ports for _ in range(case.connections)]
    selector = selectors.DefaultSelector()
    for reader in readers:
        selector.register(reader.sock, selectors.EVENT_READ, reader)
    until_s = time.monotonic() + DEADLINE_S
    while selector.get_map() and time.monotonic() < until_s:
        for key, _ in selector.select(timeout=1):
            if key.data.read():
                selector.unregister(key.fileobj)
                key.data.sock.close()
        time.sleep(0.005)  # leaves the core to the server, whose work is measured
    return sum(reader.events - 2 for reader in readers)  # the role and [DONE]


def measure(case: Case, tokens: int) -> bool:
    number = str(CASES.index(case))
    child = subprocess.Popen(
        [sys.executable, __file__, "--serve", number], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    assert child.stdout is not None

    def used_s() -> float:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write("\n")
        child.stdin.flush()
        return float(child.stdout.readline())

    try:
        ports = json.loads(child.stdout.readline())
        before_s, start_s = used_s(), time.monotonic()
        events = read_all(ports, case, tokens)
        used, took_s = used_s() - before_s, time.monotonic() - start_s
    finally:
        child.stdin.close()
        child.wait()
    asked = case.replicas * case.connections * tokens
    ideal_s = tokens * case.step_s
    print(
        f"{case.name}: {events} events for {asked} tokens in {used:.2f} s of CPU: {events / used:,.0f} per CPU second "
        f"(wanted {case.wanted_per_cpu_s:,}); {took_s:.1f} s by the clock, where its steps take {ideal_s:.1f} s"
    )
    return events == asked and events / used >= case.wanted_per_cpu_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve is not None:
        asyncio.run(serve(CASES[args.serve]))
        return 0
    done = [measure(case, args.tokens) for case in CASES]
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
