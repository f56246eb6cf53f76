"""``docker`` and ``kind``, run as a person would run them: what is on PATH, DOCKER_HOST and all else of the environment
as they are."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import TargetError
from harness.processes.children import send_signal
from harness.stack.cache import built_dir
from harness.targets.kind.cluster_file import OURS, control_plane_name

COMMAND_S = 60.0
CREATE_S = 600.0
"""Pulling the node image counts."""
STARTING = "Starting control-plane"
"""What kind says when all its containers are up and it begins to make a cluster of them."""
KIND_AT_LEAST = (0, 31)
"""From here on kind knows nodes of Kubernetes 1.36 and later (kubeadm's v1beta4)."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """The last that it said, in one line."""
        said = [line.strip() for line in (self.err or self.out).splitlines() if line.strip()]
        return " / ".join(said[-3:])[:400] or f"exit code {self.code}"


async def run(argv: Sequence[str], *, within_s: float = COMMAND_S, given: bytes | None = None) -> Ended:
    """TargetError when it cannot be started or takes too long; its exit code is the caller's to judge."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL if given is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise TargetError(f"{argv[0]} could not be started: {error.strerror}") from error
    try:
        async with asyncio.timeout(within_s):
            out, err = await process.communicate(given)
    except TimeoutError:
        raise TargetError(f"`{' '.join(argv)[:120]}` did not end within {within_s:.0f} s") from None
    finally:
        send_signal(process, signal.SIGKILL)
        await process.wait()
    return Ended(process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace"))


async def must(argv: Sequence[str], *, within_s: float = COMMAND_S, given: bytes | None = None) -> str:
    """What it printed. TargetError with its own words when it fails."""
    ended = await run(argv, within_s=within_s, given=given)
    if ended.code != 0:
        raise TargetError(f"`{' '.join(argv)[:120]}` failed: {ended.words}")
    return ended.out


def find_docker() -> str:
    docker = shutil.which("docker")
    if docker is None:
        raise TargetError(
            "the target kind needs Docker, and there is no `docker` on PATH",
            hint="install Docker (https://docs.docker.com/engine/install), or use --target embedded or controlplane",
        )
    return docker


def find_kind(bin_dir: Path | None = None) -> str:
    found = shutil.which("kind", path=str(bin_dir)) if bin_dir else shutil.which("kind")
    found = found or shutil.which("kind", path=str(built_dir()))
    if found is None:
        raise TargetError(
            "the target kind needs kind, and there is no `kind` " + (f"in {bin_dir}" if bin_dir else "on PATH"),
            hint="install it (https://kind.sigs.k8s.io), or build it: python -m harness.stack build kind",
        )
    return found


@dataclass(frozen=True, slots=True)
class KindCommands:
    """``cluster`` is the name of the one cluster that these commands touch."""

    docker: str
    kind: str
    cluster: str
    kubeconfig: Path
    say: Say = field(default=lambda text: None)

    async def check(self) -> tuple[dict[str, str], str]:
        """Versions of what is there, and the platform of Docker's containers (``linux/amd64``). TargetError says what
        is missing, and what to do about it."""
        ended = await run([self.docker, "version", "--format", "{{json .}}"])
        if ended.code != 0:
            raise TargetError(
                f"Docker does not answer: {ended.words}",
                hint="is it running, may you use it (`docker ps`), and is DOCKER_HOST right?",
            )
        server = json.loads(ended.out).get("Server") or {}
        said = await must([self.kind, "version", "-q"])
        version = re.search(r"(\d+)\.(\d+)\.\d+\S*", said)
        if version is None or (int(version[1]), int(version[2])) < KIND_AT_LEAST:
            raise TargetError(
                f"{self.kind} is of version {said.strip() or 'unknown'}",
                hint=f"install kind {'.'.join(map(str, KIND_AT_LEAST))} or later; written for 0.33",
            )
        versions = {"kind": version[0], "Docker": str(server.get("Version", "unknown"))}
        return versions, f"{server.get('Os', 'unknown')}/{server.get('Arch', 'unknown')}"

    async def nodes(self) -> list[str]:
        """Containers of the cluster of this name, whoever made it; stopped ones, too."""
        return list(await self._of_nodes("{{.Names}}"))

    async def states(self) -> dict[str, str]:
        """By container: running, exited, paused."""
        return dict(line.split() for line in await self._of_nodes("{{.Names}} {{.State}}"))

    async def ids(self) -> dict[str, str]:
        """Of containers, by their names."""
        return dict(line.split() for line in await self._of_nodes("{{.Names}} {{.ID}}"))

    async def _of_nodes(self, fields: str) -> list[str]:
        label = f"label=io.x-k8s.kind.cluster={self.cluster}"
        return (await must([self.docker, "ps", "-a", "--filter", label, "--format", fields])).splitlines()

    async def is_ours(self) -> bool:
        """Whether a node of the cluster has our mark: of one that is half made, or half deleted, any may be missing."""
        for node in await self.nodes():
            ended = await run([self.docker, "inspect", "--format", "{{json .Mounts}}", node])
            if ended.code == 0 and any(m.get("Destination") == OURS for m in json.loads(ended.out) or ()):
                return True
        return False

    async def make_way(self) -> None:
        """Deletes what an earlier run of ours left behind; a cluster of somebody else's stays, and is an error."""
        there = await self.nodes()
        if not there:
            return
        if not await self.is_ours():
            raise TargetError(
                f"there is a kind cluster {self.cluster!r} that is not ours ({', '.join(sorted(there)[:3])})",
                hint="choose another name with GPU_HARNESS_KIND_CLUSTER, or delete it yourself",
            )
        self.say(f"deleting the cluster {self.cluster} that an earlier run left behind")
        await self.delete()

    async def create(self, file: Path, image: str, there: asyncio.Event) -> None:
        """Words of kind's progress are passed on. ``there`` is set once all nodes run, before they are a cluster."""
        argv = [self.kind, "create", "cluster", "--config", str(file), "--kubeconfig", str(self.kubeconfig), "--retain"]
        argv += ["--image", image] if image else []
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        words: list[str] = []
        try:
            async with asyncio.timeout(CREATE_S):
                async for raw in process.stderr:
                    line = raw.decode(errors="replace").strip()
                    words.append(line)
                    if STARTING in line:
                        there.set()
                    if line.endswith("..."):  # a step that begins
                        self.say(f"kind: {line.lstrip('• ').removesuffix('...').strip()}")
                await process.wait()
        except TimeoutError:
            raise TargetError(f"kind did not create the cluster within {CREATE_S:.0f} s: {words[-1:]}") from None
        finally:
            send_signal(process, signal.SIGKILL)
            await process.wait()
        if process.returncode != 0:
            raise TargetError(
                "\n    ".join(["kind could not create the cluster:", *[w for w in words if w][-12:]]),
                hint="the first line that says ERROR is the reason; kind's own list: "
                "https://kind.sigs.k8s.io/docs/user/known-issues",
            )

    async def load(self, archive: Path, nodes: Sequence[str] = ()) -> None:
        chosen = ["--nodes", ",".join(nodes)] if nodes else []
        argv = [self.kind, "load", "image-archive", str(archive), "--name", self.cluster, *chosen]
        await must(argv, within_s=CREATE_S)

    async def published(self, port: int) -> str:
        """HOST:PORT at which a port of the control-plane node is reached where Docker runs."""
        out = await must([self.docker, "port", control_plane_name(self.cluster), f"{port}/tcp"])
        if not out.strip():
            raise TargetError(f"Docker publishes no port {port} of {control_plane_name(self.cluster)}")
        return out.split()[0]

    async def delete(self) -> None:
        """Whole, whatever state its nodes are in; a paused container cannot be removed."""
        for node in await self.nodes():
            await run([self.docker, "unpause", node])
        argv = [self.kind, "delete", "cluster", "--name", self.cluster, "--kubeconfig", str(self.kubeconfig)]
        await must(argv, within_s=CREATE_S)
        if left := await self.nodes():
            raise TargetError(f"kind deleted the cluster {self.cluster}, but {', '.join(left)} is still there")
