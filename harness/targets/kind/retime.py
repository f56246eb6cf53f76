"""A kept cluster in another time: what kubelets, API server and controllers count follows the ``time_scale``, and is
changed where kubeadm has put it. All of them begin anew with it, and are then asked what they have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from fakes.durations import seconds_of
from harness.kube.port import LEASE, ApiError, NotFound
from harness.targets.kind.cluster_file import TIMED_FLAGS, control_plane_name, kubelet_times, timed_flags
from harness.targets.kind.commands import KindCommands, must, run
from harness.targets.kind.inventory import ApiServer, NotAsItWas

KUBELET_FILE = "/var/lib/kubelet/config.yaml"
MANIFESTS = "/etc/kubernetes/manifests"
ADMIN = "/etc/kubernetes/admin.conf"
BACK_S = 120.0
LOOK_S = 0.3


class Retiming:
    """Of one cluster, whose ``workers`` need not run."""

    def __init__(self, commands: KindCommands, workers: Collection[str], time_scale: float, folder: Path) -> None:
        """``folder`` is for files that are on their way."""
        self._commands = commands
        self._docker = commands.docker
        self._first = control_plane_name(commands.cluster)
        self._workers = workers
        self._time_scale = time_scale
        self._folder = folder

    async def change(self) -> None:
        """Kubelets of workers begin with it when they boot. TargetError where something cannot be done."""
        self._folder.mkdir(parents=True, exist_ok=True)
        # While the kubelet stands still it starts nothing from half of a file, and nothing that was ended.
        await self._inside("systemctl", "stop", "kubelet")
        flags = timed_flags(self._time_scale)
        patterns = "|".join(f"^{program}-" for program in flags)
        edits = [self._edit(node, KUBELET_FILE, self._timed_kubelet) for node in (self._first, *self._workers)]
        edits += [self._edit(self._first, _manifest(name), self._timed_manifest) for name in flags]
        await asyncio.gather(
            *edits, self._inside("sh", "-c", f"crictl pods -q --name '{patterns}' | xargs -r crictl rmp -f")
        )
        await self._inside("systemctl", "start", "kubelet")

    async def await_control_plane(self, kube: ApiServer) -> None:
        """Until both programs run with the flags that are wanted, the API server is ready, and nobody waits for the
        controller manager that was. NotAsItWas where that does not come about."""

        async def wrong() -> str:
            return await self._wrong_programs() or await self._wrong_lease(kube)

        await _until_right(wrong, "the control plane did not come back")

    async def await_kubelets(self, kube: ApiServer, nodes: Collection[str]) -> None:
        """Until they say that they have it, the one of the control-plane node among them. NotAsItWas where one has
        not."""

        async def wrong() -> str:
            return "; ".join([w for node in (self._first, *nodes) if (w := await self._wrong_kubelet(kube, node))])

        await _until_right(wrong, "kubelets do not have what they were given")

    async def _wrong_programs(self) -> str:
        for program, wanted in timed_flags(self._time_scale).items():
            said = await run([self._docker, "exec", self._first, "pgrep", "-a", "-f", f"^{program} "])
            lines = said.out.splitlines()
            if len(lines) != 1:
                return f"{program} runs {len(lines)} times"
            if (has := timed_of(lines[0].split())) != wanted:
                return f"{program} runs with {has}, not with {wanted}"
        ready = ["kubectl", "--kubeconfig", ADMIN, "get", "--raw", "/readyz"]
        ended = await run([self._docker, "exec", self._first, *ready])
        return "" if ended.code == 0 else ended.words

    async def _wrong_lease(self, kube: ApiServer) -> str:
        """Who was killed held it, and it would be waited for until it has run out."""
        try:
            await kube.delete(LEASE, "kube-controller-manager", "kube-system")
        except NotFound:
            return ""
        except (ApiError, ConnectionError) as error:
            return str(error)
        return ""

    async def _wrong_kubelet(self, kube: ApiServer, node: str) -> str:
        try:
            has = (await kube.raw(f"/api/v1/nodes/{node}/proxy/configz"))["kubeletconfig"]
        except (ApiError, ConnectionError) as error:
            return f"{node}: {error}"
        wanted = kubelet_times(self._time_scale)
        found = {name: has.get(name) for name in wanted}
        return "" if _in_seconds(found) == _in_seconds(wanted) else f"{node} has {found}, not {wanted}"

    async def _edit(self, node: str, path: str, changed: Callable[[str], str]) -> None:
        """A file of a container, which need not run; its owner and its mode stay as they are."""
        here = self._folder / f"{node}-{path.rpartition('/')[2]}"
        try:
            await must([self._docker, "cp", f"{node}:{path}", str(here)])
            here.write_text(changed(here.read_text()))
            await must([self._docker, "cp", str(here), f"{node}:{path}"])
        finally:
            here.unlink(missing_ok=True)

    def _timed_kubelet(self, text: str) -> str:
        return timed_kubelet(text, self._time_scale)

    def _timed_manifest(self, text: str) -> str:
        return timed_manifest(text, self._time_scale)

    async def _inside(self, *argv: str) -> None:
        await must([self._docker, "exec", self._first, *argv])


async def _until_right(look: Callable[[], Awaitable[str]], failure: str) -> None:
    """``look`` says what is still wrong."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + BACK_S
    while wrong := await look():
        if loop.time() > deadline:
            raise NotAsItWas(f"{failure} within {BACK_S:.0f} s: {wrong}")
        await asyncio.sleep(LOOK_S)


def timed_kubelet(text: str, time_scale: float) -> str:
    """A KubeletConfiguration."""
    return str(yaml.safe_dump(yaml.safe_load(text) | kubelet_times(time_scale), sort_keys=False))


def timed_manifest(text: str, time_scale: float) -> str:
    """A static pod of kubeadm, with one container, whose command is the program with its flags."""
    pod = yaml.safe_load(text)
    (container,) = pod["spec"]["containers"]
    program, *words = container["command"]
    flags = [f"--{name}={value}" for name, value in timed_flags(time_scale)[program].items()]
    container["command"] = [program, *(word for word in words if _flag(word)[0] not in TIMED_FLAGS), *flags]
    return str(yaml.safe_dump(pod, sort_keys=False))


def timed_of(words: Sequence[str]) -> dict[str, str]:
    """The flags of a command that follow the time scale."""
    return {name: value for name, value in map(_flag, words) if name in TIMED_FLAGS}


def _flag(word: str) -> tuple[str, str]:
    name, _, value = word.removeprefix("--").partition("=")
    return name, value


def _in_seconds(times: Mapping[str, Any]) -> dict[str, float | None]:
    return {
        name: seconds_of(value) if isinstance(value, str) else None if value is None else float(value)
        for name, value in times.items()
    }


def _manifest(program: str) -> str:
    return f"{MANIFESTS}/{program}.yaml"
