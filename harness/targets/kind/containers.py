"""kind's node containers as machines: what befalls a node is a plain ``docker`` command."""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from harness.errors import TargetError
from harness.targets.kind.commands import must, run
from harness.targets.machines import Trouble

NETWORK = "kind"
"""kind's own, for all its clusters."""
API_PORT = 6443
SWITCHES_FOLDER, SWITCHES_FILE = "/var/lib/gpu-harness", "switches.json"
CNI_FOLDER, CNI_FILE = "/etc/cni/net.d", "10-kindnet.conflist"
"""kind's own network. A machine that boots as another Node gets another range of addresses, and until kindnet has come
up and written that down, pods would get addresses of the old range, which nobody has a route to. What is not readable
keeps the Node from being Ready until then, as on a machine that boots for the first time."""
STOP_S = 2
"""A node that was drained has nothing left to say; Docker's own patience is 10 s."""


class ContainerMachines:
    cannot: Mapping[Trouble, str] = {}

    def __init__(self, docker: str, nodes: Iterable[str]) -> None:
        self._docker = docker
        self._on: dict[str, None] = dict.fromkeys(nodes)
        self._addresses: dict[str, str] = {}

    def names(self) -> Collection[str]:
        return list(self._on)

    async def trouble(self, node: str, trouble: Trouble) -> None:
        match trouble:
            case Trouble.SILENT:
                await self._inside(node, "systemctl", "kill", "-s", "STOP", "kubelet")
            case Trouble.FROZEN:
                if not (await self._state(node))["Paused"]:
                    await self._do("pause", node)
            case Trouble.OFF:
                await self._kill(node)
            case Trouble.DISCONNECTED:
                if (address := await self._address(node)) is not None:
                    self._addresses[node] = address
                    await self._do("network", "disconnect", NETWORK, node)
            case Trouble.CUT_OFF:
                await self._firewall(node, "-I")
            case Trouble.RUNTIME_DOWN:
                await self._inside(node, "systemctl", "stop", "containerd")

    async def relieve(self, node: str, trouble: Trouble) -> None:
        match trouble:
            case Trouble.SILENT:
                await self._inside(node, "systemctl", "kill", "-s", "CONT", "kubelet")
            case Trouble.FROZEN:
                if (await self._state(node))["Paused"]:
                    await self._do("unpause", node)
            case Trouble.OFF:
                await self._do("start", node)
            case Trouble.DISCONNECTED:
                await self._reconnect(node)
            case Trouble.CUT_OFF:
                await self._firewall(node, "-D")
            case Trouble.RUNTIME_DOWN:
                await self._inside(node, "systemctl", "start", "containerd")

    async def restart_kubelet(self, node: str) -> None:
        await self._inside(node, "systemctl", "restart", "kubelet")

    async def power_on(self, node: str) -> None:
        """As another Node than it was, if it was one."""
        await self._put(node, CNI_FOLDER, CNI_FILE, b"")
        await self._do("start", node)
        self._on[node] = None

    async def power_off(self, node: str) -> None:
        self._on.pop(node, None)
        await self._kill(node)

    async def shut_down(self, node: str) -> None:
        self._on.pop(node, None)
        if (await self._state(node))["Paused"]:
            await self._do("unpause", node)
        await self._do("stop", "--time", str(STOP_S), node)

    async def switch_plugin(self, node: str, switches: Mapping[str, Any]) -> None:
        """Written as a whole, and put in place whole: the plugin looks at it all the time."""
        text = json.dumps({"*": dict(switches)} if switches else {}).encode()
        await self._put(node, SWITCHES_FOLDER, SWITCHES_FILE, text)

    async def _put(self, node: str, path: str, name: str, content: bytes) -> None:
        """Into a stopped container, too. Makes the folder ``path`` if need be."""
        parent, _, last = path.rpartition("/")
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            folder = tarfile.TarInfo(last)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
            file = tarfile.TarInfo(f"{last}/{name}")
            file.size = len(content)
            tar.addfile(file, io.BytesIO(content))
        await must([self._docker, "cp", "-", f"{node}:{parent}"], given=archive.getvalue())

    async def park(self, nodes: Collection[str]) -> None:
        """At the start, all at once; what is on them is not missed."""
        for node in nodes:
            self._on.pop(node, None)
        await asyncio.gather(*(self._kill(node) for node in nodes))

    async def rest(self, node: str) -> None:
        """Without power, on its network, its device plugin without a fault: ready to be given out again."""
        await self._kill(node)
        if await self._address(node) is None:
            await self._do("network", "connect", NETWORK, node)
        await self.switch_plugin(node, {})

    async def _firewall(self, node: str, verb: str) -> None:
        rule = ["OUTPUT", "-p", "tcp", "--dport", str(API_PORT), "-j", "DROP"]
        there = (await run([self._docker, "exec", node, "iptables", "-C", *rule])).code == 0
        if there is (verb == "-D"):
            await self._inside(node, "iptables", verb, *rule)

    async def _kill(self, node: str) -> None:
        state = await self._state(node)
        if state["Paused"]:
            await self._do("unpause", node)
        if state["Running"]:
            await self._do("kill", node)

    async def _state(self, node: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(
            await must([self._docker, "inspect", "--format", "{{json .State}}", node])
        )
        return found

    async def _reconnect(self, node: str) -> None:
        """Docker gives the lowest address that is free, which may be that of a node without power; but the cluster
        knows this one by the address that it had, so it gets that as well."""
        if await self._address(node) is None:
            await self._do("network", "connect", NETWORK, node)
        had, now = self._addresses.pop(node, None), await self._address(node)
        if had is not None and had != now:
            await self._inside(node, "ip", "address", "replace", had, "dev", "eth0")

    async def _address(self, node: str) -> str | None:
        """With the length of its prefix; None off the network."""
        said = await must([self._docker, "inspect", "--format", "{{json .NetworkSettings.Networks}}", node])
        found = (json.loads(said) or {}).get(NETWORK)
        return None if found is None else f"{found.get('IPAddress')}/{found.get('IPPrefixLen')}"

    async def _inside(self, node: str, *argv: str) -> None:
        if not (await self._state(node))["Running"]:
            raise TargetError(f"the container {node} is not running")
        await self._do("exec", node, *argv)

    async def _do(self, *argv: str) -> None:
        await must([self._docker, *argv])
