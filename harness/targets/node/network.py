"""The network of the machines: a bridge, and a cable from it to each. It lies in a namespace of its own, so the host's
network is what it was, and all of it goes with the process that made it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from fakes.nodes.machine import Machine
from harness.errors import TargetError
from harness.targets.node.programs import pod_subnet

BRIDGE = "machines"
BRIDGE_ADDRESS = "02:00:0a:00:00:01"
ROUTER = "10.0.0.1"
API = "10.0.0.2"
"""Where the API server is, for machines and their pods."""
_PREFIX = 16


async def make_bridge() -> None:
    await _ip(
        "link set lo up",
        # Without an address of its own it takes the lowest of its ports', another one when a machine is added: then
        # nobody's packets arrive until all have asked for it anew.
        f"link add {BRIDGE} address {BRIDGE_ADDRESS} type bridge",
        *(f"addr add {address}/{_PREFIX} dev {BRIDGE}" for address in (ROUTER, API)),
        f"link set {BRIDGE} up",
    )
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")  # of this network namespace alone


async def plug_in(machine: Machine, pid: int) -> None:
    """``pid`` is a process in the machine's network."""
    cable = _cable(machine)
    await _ip(
        f"link add {cable} type veth peer name eth0 netns {pid}",
        f"link set {cable} master {BRIDGE} up",
        f"route replace {pod_subnet(machine)} via {machine.address} dev {BRIDGE} onlink",
    )
    await _ip(
        f"addr add {machine.address}/{_PREFIX} dev eth0",
        "link set eth0 up",
        f"route add default via {ROUTER}",
        inside=pid,
    )


async def connect(machine: Machine, connected: bool) -> None:
    """Pulls the cable, or puts it back."""
    await _ip(f"link set {_cable(machine)} {'up' if connected else 'down'}")


def _cable(machine: Machine) -> str:
    return f"m{machine.index}"


async def _ip(*commands: str, inside: int | None = None) -> None:
    enter: Sequence[str] = () if inside is None else ("nsenter", "--target", str(inside), "--net", "--")
    process = await asyncio.create_subprocess_exec(
        *enter, "ip", "-batch", "-",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said, _ = await process.communicate("\n".join(commands).encode())
    if process.returncode != 0:
        raise TargetError(f"the network of the machines could not be set up: {said.decode(errors='replace').strip()}")
