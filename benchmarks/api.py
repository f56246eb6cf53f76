"""GET, LIST of 1,000 and a watch fanned out to 50 clients: the embedded API, the bare HTTP server with the same bytes,
and the real kube-apiserver, one after the other in one run.

``python benchmarks/api.py [--pods 1000] [--gets 2000] [--lists 40] [--changes 200] [--bin-dir DIR]`` asks each of them
the same and prints what one answer costs the server in CPU, which other load on the machine does not change much, and
how many there were per second of the clock. Without the programs of a control plane the third column is left out.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from harness.clock import NS_PER_S
from harness.errors import TargetError
from harness.kube.port import NAMESPACE, POD, SERVICE_ACCOUNT, Json
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.find import find_binaries
from harness.stack.kubernetes import running_control_plane

NS = "bench"
WATCHERS = 50
CLIENTS = 8
PEERS = Path(__file__).parent / "peers"
MERGE = {"Content-Type": "application/merge-patch+json"}


def pod(name: str) -> Json:
    container = {
        "name": "vllm",
        "image": "vllm/vllm-openai:v0.32.0",
        "args": ["--served-model-name", "m", "--shutdown-timeout", "85"],
        "ports": [{"name": "http", "containerPort": 8000}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 5},
    }
    return {"metadata": {"name": name, "labels": {"app": "llm"}}, "spec": {"containers": [container]}}


@dataclass(slots=True)
class Server:
    """``pids``: the processes whose CPU counts."""

    name: str
    base: str
    pids: list[int]
    object_path: str
    list_path: str
    watch_path: str
    headers: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None

    def cpu_s(self) -> float:
        tasks = (task for pid in self.pids for task in Path(f"/proc/{pid}/task").iterdir())
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / NS_PER_S

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        connector = aiohttp.TCPConnector(limit=0, ssl=self.tls or True)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            self.base, headers=self.headers, connector=connector, timeout=timeout, read_bufsize=2**20
        ) as session:
            yield session


@dataclass(frozen=True, slots=True)
class Figure:
    """Of one kind of answer."""

    cpu_us: float
    per_s: float


async def fill(session: aiohttp.ClientSession, pods: int) -> None:
    async with session.post(NAMESPACE.path(), json={"metadata": {"name": NS}}) as made:
        made.raise_for_status()
    while (await session.get(SERVICE_ACCOUNT.path(NS, "default"))).status != 200:
        await asyncio.sleep(0.2)  # a controller makes it a moment later
    for n in range(pods):
        async with session.post(POD.path(NS), json=pod(f"llm-{n:05}")) as made:
            made.raise_for_status()


async def repeat(count: int, call: Callable[[], Awaitable[None]]) -> None:
    async def client() -> None:
        for _ in range(count // CLIENTS):
            await call()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


async def timed(server: Server, count: int, work: Awaitable[None]) -> Figure:
    began, cpu_s = time.monotonic(), server.cpu_s()
    await work
    return Figure(1e6 * (server.cpu_s() - cpu_s) / count, count / (time.monotonic() - began))


async def watched(session: aiohttp.ClientSession, server: Server, changes: int) -> Figure:
    """Per event that reached a client."""
    seen, ready, turn = 0, asyncio.Semaphore(0), asyncio.Condition()

    async def client() -> None:
        nonlocal seen
        async with session.get(server.watch_path) as response:
            ready.release()
            while await response.content.readline():
                async with turn:
                    seen += 1
                    turn.notify_all()

    clients = [asyncio.create_task(client()) for _ in range(WATCHERS)]
    for _ in clients:
        await ready.acquire()

    async def change() -> None:
        for n in range(1, changes + 1):
            body = f'{{"metadata":{{"annotations":{{"n":"{n:06}"}}}}}}'
            async with session.patch(server.object_path, data=body, headers=MERGE) as response:
                response.raise_for_status()
                await response.read()
            async with turn:
                await turn.wait_for(lambda n=n: seen >= n * WATCHERS)  # type: ignore[misc]  # a lambda with a default

    found = await timed(server, changes * WATCHERS, change())
    for each in clients:
        each.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    return found


async def measure(server: Server, args: argparse.Namespace) -> list[Figure]:
    async with server.session() as session:

        async def read(path: str) -> None:
            async with session.get(path) as response:
                response.raise_for_status()
                await response.read()

        await repeat(80, lambda: read(server.object_path))
        return [
            await timed(server, args.gets, repeat(args.gets, lambda: read(server.object_path))),
            await timed(server, args.lists, repeat(args.lists, lambda: read(server.list_path))),
            await watched(session, server, args.changes),
        ]


@contextlib.contextmanager
def process(script: str, *words: str) -> Iterator[tuple[int, str]]:
    """Its pid and its address."""
    command = [sys.executable, str(PEERS / script), *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            yield child.pid, f"http://127.0.0.1:{int(child.stdout.readline())}"
        finally:
            child.terminate()


def kubernetes(name: str, base: str, pids: list[int], version: str = "") -> Server:
    watch = f"{POD.path(NS)}?watch=1&resourceVersion={version}"
    return Server(name, base, pids, POD.path(NS, "llm-00000"), POD.path(NS), watch)


async def version_of(session: aiohttp.ClientSession) -> str:
    listed: Json = await (await session.get(POD.path(NS) + "?limit=1")).json()
    return str(listed["metadata"]["resourceVersion"])


async def embedded(args: argparse.Namespace, folder: Path) -> list[Figure]:
    with process("embedded_api.py") as (pid, base):
        server = kubernetes("embedded", base, [pid])
        async with server.session() as session:
            await fill(session, args.pods)
            server.watch_path += await version_of(session)
            for file, path in (("object", server.object_path), ("list", server.list_path)):
                (folder / file).write_bytes(await (await session.get(path)).read())
        line = b'{"type":"MODIFIED","object":%s}\n' % (folder / "object").read_bytes().strip()
        (folder / "line").write_bytes(line)
        return await measure(server, args)


async def bare(args: argparse.Namespace, folder: Path) -> list[Figure]:
    with process("bare_api.py", str(folder)) as (pid, base):
        return await measure(Server("bare", base, [pid], "/object", "/list", "/watch"), args)


async def real(args: argparse.Namespace, folder: Path) -> list[Figure]:
    binaries = find_binaries(CONTROL_PLANE, args.bin_dir)
    async with running_control_plane(binaries, folder / "cp", without=("kube-scheduler",)) as plane:
        server = kubernetes("kube-apiserver", plane.url, pids_of(plane.folder, ("kube-apiserver", "etcd")))
        server.headers = {"Authorization": f"Bearer {plane.token}"}
        server.tls = ssl.create_default_context(cafile=str(plane.authority))
        async with server.session() as session:
            await fill(session, args.pods)
            server.watch_path += await version_of(session)
        return await measure(server, args)


def pids_of(folder: Path, names: tuple[str, ...]) -> list[int]:
    """etcd works for the API server alone, so its CPU counts too."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = entry.read_bytes().decode().split("\0")
            if Path(words[0]).name in names and any(str(folder) in word for word in words):
                found.append(int(entry.parent.name))
    return found


def table(columns: dict[str, list[Figure]]) -> str:
    rows = ("GET of a pod", "LIST of all pods", f"event to one of {WATCHERS} watchers")
    lines = [f"{'CPU of the server per answer':34}" + "".join(f"{name:>26}" for name in columns)]
    for i, row in enumerate(rows):
        cells = (f"{figures[i].cpu_us:9.0f} us {figures[i].per_s:8.0f}/s" for figures in columns.values())
        lines.append(f"{row:34}" + "".join(f"{cell:>26}" for cell in cells))
    shares = (b.cpu_us / e.cpu_us for e, b in zip(columns["embedded"], columns["bare"], strict=True))
    lines.append("embedded per CPU second, of bare:  " + ", ".join(f"{100 * share:.0f} %" for share in shares))
    return "\n".join(lines)


async def compare(args: argparse.Namespace) -> None:
    columns: dict[str, list[Figure]] = {}
    with tempfile.TemporaryDirectory() as folder:
        columns["embedded"] = await embedded(args, Path(folder))
        columns["bare"] = await bare(args, Path(folder))
        try:
            columns["kube-apiserver + etcd"] = await real(args, Path(folder))
        except TargetError as missing:
            print(f"without the real one: {missing}")
    print(table(columns))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--gets", type=int, default=2000)
    parser.add_argument("--lists", type=int, default=40)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--bin-dir", type=Path)
    asyncio.run(compare(parser.parse_args()))


if __name__ == "__main__":
    main()
