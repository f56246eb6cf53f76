"""Machines of namespaces, with a real kubelet and a real containerd each: what can be done to them."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fakes.device_plugin.orders import taken_of
from fakes.device_plugin.switches import ALL
from fakes.nodes.machine import Machine
from harness.errors import TargetError
from harness.targets.machines import Trouble
from harness.targets.node import cgroups, network
from harness.targets.node.api_door import ApiDoor
from harness.targets.node.credentials import place_credentials
from harness.targets.node.machine_init import RUN
from harness.targets.node.namespaces import die_with_parent
from harness.targets.node.programs import SWITCHES_FILE, Setting, files, import_image, init_config, kubelet_config

UP_WITHIN_S = 60.0
OBEYED_S = 120.0
"""The longest order is to import an image. A machine that stands still answers none."""
POLL_S = 0.05
TAKEN_S = 1.0
"""A device plugin looks at its switches every 0.2 s; one that stands still is not waited for."""
UNSHARE = ("unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc")


@dataclass(frozen=True, slots=True)
class Ground:
    """What all machines have in common. ``state`` and ``logs`` are folders, ``cgroup`` the beginning of a name,
    ``credentials`` what the API server knows nodes by, ``images`` archives that every machine gets."""

    state: Path
    logs: Path
    cgroup: str
    credentials: Path
    api_url: str
    programs: Mapping[str, str]
    time_scale: float
    images: Sequence[Path] = ()


@dataclass(slots=True)
class _Running:
    """A machine under power. ``pid`` is its first process, as seen from outside."""

    machine: Machine
    shell: asyncio.subprocess.Process
    pid: int
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@asynccontextmanager
async def _within(limit_s: float, failure: str, *, asks: str = "", hint: str | None = None) -> AsyncIterator[None]:
    """The block, which ends as a TargetError that begins with ``failure`` where it takes longer."""
    try:
        async with asyncio.timeout(limit_s):
            yield
    except TimeoutError:
        raise TargetError(f"{failure} within {limit_s:g} s{asks}", hint=hint) from None


class NamespaceMachines:
    """Implements ``harness.targets.machines.Machines``."""

    cannot: Mapping[Trouble, str] = {}

    def __init__(self, ground: Ground, door: ApiDoor) -> None:
        self._ground = ground
        self._door = door
        self._known: dict[str, Machine] = {}
        self._running: dict[str, _Running] = {}
        self._switches: dict[str, Mapping[str, Any]] = {}

    def names(self) -> Collection[str]:
        return list(self._known)

    async def install(self, machine: Machine, switches: Mapping[str, Any]) -> None:
        """A new machine; its device plugin begins with ``switches``. It boots when it gets power."""
        self._known[machine.name] = machine
        self._switches[machine.name] = dict(switches)
        setting, state = self._setting(machine), self._state(machine.name)
        await asyncio.to_thread(self._lay_out, setting, state)

    async def power_on(self, node: str) -> None:
        machine = self._machine(node)
        if node in self._running:
            return
        await asyncio.to_thread(cgroups.make, self._cgroup(node))
        self._running[node] = await self._boot(machine)
        try:
            await self._bring_up(node, self._running[node])
        except BaseException:
            await self.power_off(node)  # half up it would be taken for up by whoever tries again
            raise

    async def _bring_up(self, node: str, running: _Running) -> None:
        machine = running.machine
        cgroups.take_in(self._cgroup(node), running.pid)
        await network.plug_in(machine, running.pid)
        await self._start(node, "containerd")
        await self._until_containerd_serves(node)
        setting = self._setting(machine)
        for archive in self._ground.images if not self._has_images(node) else ():
            answer = await self._order(node, op="run", argv=import_image(setting, archive))
            if answer["code"] != 0:
                raise TargetError(f"{node}: {archive.name} could not be imported: {answer['said']}")
        self._note_images(node)
        await self._start(node, "kubelet")
        if machine.pool.gpus:
            await self._start(node, "device-plugin")

    async def power_off(self, node: str) -> None:
        if (running := self._running.pop(node, None)) is None:
            return
        with suppress(ProcessLookupError):
            running.shell.kill()  # process 1 of the machine goes with it, and all others with that
        await running.shell.wait()
        await asyncio.to_thread(cgroups.remove, self._cgroup(node))

    async def shut_down(self, node: str) -> None:
        """As an operator does: the kubelet goes first, the containers get a SIGTERM. Here there is no systemd, so the
        kubelet's own graceful shutdown does not take place."""
        if node in self._running:
            await self._order(node, op="stop", name="kubelet", signal="SIGTERM")
            await self.power_off(node)

    async def remove(self, node: str) -> None:
        """For good. Its disk is only put aside, for the keeper to remove at the end: thousands of files are on it, and
        to delete them would keep the machine busy in the middle of a run."""
        await self.power_off(node)
        self._known.pop(node, None)
        with suppress(OSError):  # then it stays where it is, and is removed from there
            self._state(node).rename(self._ground.state / f"gone-{uuid.uuid4().hex}")

    async def trouble(self, node: str, trouble: Trouble) -> None:
        machine = self._machine(node)
        match trouble:
            case Trouble.SILENT:
                await self._order(node, op="signal", name="kubelet", signal="SIGSTOP")
            case Trouble.FROZEN:
                cgroups.freeze(self._cgroup(node), True)
            case Trouble.OFF:
                await self.power_off(node)
            case Trouble.DISCONNECTED:
                await network.connect(machine, False)
            case Trouble.CUT_OFF:
                self._door.cut_off(machine.address, True)
            case Trouble.RUNTIME_DOWN:
                await self._order(node, op="stop", name="containerd")

    async def relieve(self, node: str, trouble: Trouble) -> None:
        if node not in self._known or (node not in self._running and trouble is not Trouble.OFF):
            return  # nothing of it is left
        machine = self._machine(node)
        match trouble:
            case Trouble.SILENT:
                await self._order(node, op="signal", name="kubelet", signal="SIGCONT")
            case Trouble.FROZEN:
                cgroups.freeze(self._cgroup(node), False)
            case Trouble.OFF:
                await self.power_on(node)
            case Trouble.DISCONNECTED:
                await network.connect(machine, True)
            case Trouble.CUT_OFF:
                self._door.cut_off(machine.address, False)
            case Trouble.RUNTIME_DOWN:
                await self._start(node, "containerd")

    async def restart_kubelet(self, node: str) -> None:
        await self._order(node, op="stop", name="kubelet", signal="SIGTERM")
        await self._until_ended(node, "kubelet")
        await self._start(node, "kubelet")

    async def press(self, node: str, short_of_memory: bool) -> None:
        """Its kubelet finds it short of memory: the threshold below which it evicts is above all that there is."""
        setting, file = self._setting(self._machine(node)), self._state(node) / "kubelet.json"
        if node not in self._running:
            return
        file.write_text(json.dumps(kubelet_config(setting, short_of_memory=short_of_memory), indent=1))
        await self.restart_kubelet(node)

    async def switch_plugin(self, node: str, switches: Mapping[str, Any]) -> None:
        """Returns when the plugin goes by it, for a pod that is bound right then may be admitted within milliseconds.
        A plugin that stands still, or is not there, does once it can."""
        machine = self._machine(node)
        self._switches[node] = dict(switches)
        self._write_switches(node)
        if machine.pool.gpus and node in self._running:
            file = self._state(node) / SWITCHES_FILE
            with suppress(TimeoutError):
                async with asyncio.timeout(TAKEN_S):
                    while not taken_of(file).exists() or taken_of(file).read_bytes() != file.read_bytes():
                        await asyncio.sleep(POLL_S)

    async def close(self) -> None:
        await asyncio.gather(*(self.power_off(node) for node in list(self._running)))

    # How.

    async def _boot(self, machine: Machine) -> _Running:
        state = self._state(machine.name)
        (state / "orders").unlink(missing_ok=True)
        argv = [*UNSHARE, sys.executable, "-m", "harness.targets.node.machine_init", str(state / "init.json")]
        with (self._ground.logs / f"{machine.name}-init.log").open("ab") as log:
            shell = await asyncio.create_subprocess_exec(
                *argv, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=die_with_parent,
            )  # fmt: skip
        try:
            await self._until_it_listens(machine, shell, state / "orders")
        except BaseException:
            with suppress(ProcessLookupError):
                shell.kill()
            await shell.wait()
            raise
        (child,) = Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().split()
        return _Running(machine, shell, int(child))

    async def _until_it_listens(self, machine: Machine, shell: asyncio.subprocess.Process, orders: Path) -> None:
        log = f"its log: {self._ground.logs / f'{machine.name}-init.log'}"
        async with _within(UP_WITHIN_S, f"{machine.name} did not boot", hint=log):
            while not orders.exists():
                if shell.returncode is not None:
                    raise TargetError(f"{machine.name} did not boot: exit code {shell.returncode}", hint=log)
                await asyncio.sleep(POLL_S)

    async def _until_containerd_serves(self, node: str) -> None:
        socket = Path(f"/proc/{self._running[node].pid}/root/run/containerd/containerd.sock")
        log = self._ground.logs / f"{node}-containerd.log"
        async with _within(UP_WITHIN_S, f"containerd of {node} did not serve", hint=str(log)):
            while not socket.exists():
                await asyncio.sleep(POLL_S)

    async def _until_ended(self, node: str, program: str) -> None:
        async with _within(UP_WITHIN_S, f"{program} of {node} did not end"):
            while program in (await self._order(node, op="state"))["pids"]:
                await asyncio.sleep(POLL_S)

    async def _start(self, node: str, program: str) -> None:
        await self._order(node, op="start", name=program)

    async def _order(self, node: str, **order: Any) -> dict[str, Any]:
        if node not in self._running:
            raise TargetError(f"{node} has no power")
        try:
            reader, writer = await asyncio.open_unix_connection(self._state(node) / "orders")
        except OSError as error:
            raise TargetError(f"{node} takes no orders: {error}") from error
        try:
            async with _within(OBEYED_S, f"{node} did not do {order['op']}", asks=": is it frozen?"):
                writer.write(json.dumps(order).encode() + b"\n")
                await writer.drain()
                line = await reader.readline()
        finally:
            writer.close()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "it went away"}
        if "error" in answer:
            raise TargetError(f"{node} refused to {order}: {answer['error']}")
        return answer

    def _lay_out(self, setting: Setting, state: Path) -> None:
        for folder in ("", "cni", "pki", "pod-logs"):
            (state / folder).mkdir(parents=True, exist_ok=True)
        for name, content in files(setting).items():
            (state / name).write_text(content)
        (state / "machine-id").write_text(uuid.uuid4().hex + "\n")
        place_credentials(self._ground.credentials, setting.machine.name, state, self._ground.api_url)
        (state / "init.json").write_text(json.dumps(init_config(setting, state)))
        self._write_switches(setting.machine.name)

    def _write_switches(self, node: str) -> None:
        file = self._state(node) / SWITCHES_FILE
        part = file.with_suffix(".part")
        part.write_text(json.dumps({ALL: self._switches[node]}))
        part.rename(file)

    def _setting(self, machine: Machine) -> Setting:
        return Setting(
            machine=machine,
            programs=self._ground.programs,
            cgroup=self._cgroup(machine.name),
            time_scale=self._ground.time_scale,
            kubeconfig=RUN / "kubeconfig",
            authority=RUN / "pki/ca.crt",
            logs=self._ground.logs,
        )

    def _has_images(self, node: str) -> bool:
        return (self._state(node) / "has-images").exists()

    def _note_images(self, node: str) -> None:
        (self._state(node) / "has-images").touch()

    def _machine(self, node: str) -> Machine:
        if node not in self._known:
            raise TargetError(f"there is no machine {node}; there are: {', '.join(self._known) or 'none'}")
        return self._known[node]

    def _cgroup(self, node: str) -> str:
        return f"{self._ground.cgroup}-{node}"

    def _state(self, node: str) -> Path:
        return self._ground.state / node
