"""The process of everything around a real control plane whose nodes are real, too: the machines, and what
``harness.targets.controlplane.surround`` has but for hollow nodes.

``python -m harness.targets.node.surround`` lives in the machines' network, where pods are reached by their own
addresses; what it serves to others it serves in the network that it came from. It ends on SIGTERM or with its parent,
and takes the machines along.
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import yaml

from fakes.config import WorldConfig
from fakes.serving import on_loopback
from harness.targets.controlplane.surround import arguments, front_door, surround
from harness.targets.node import network
from harness.targets.node.api_door import ApiDoor
from harness.targets.node.fleet import RealFleet
from harness.targets.node.machines import Ground, NamespaceMachines
from harness.targets.node.namespaces import enter_new_network, within

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class MachineRoom:
    """Where the machines are kept, and of what they are made; ``Ground`` but for what the kubeconfig tells."""

    state: str
    logs: str
    cgroup: str
    credentials: str
    programs: dict[str, str]
    images: list[str]

    def write(self, path: Path) -> None:
        path.write_bytes(orjson.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> MachineRoom:
        return cls(**orjson.loads(path.read_bytes()))

    def ground(self, api_url: str, time_scale: float) -> Ground:
        return Ground(
            state=Path(self.state),
            logs=Path(self.logs),
            cgroup=self.cgroup,
            credentials=Path(self.credentials),
            api_url=api_url,
            programs=self.programs,
            time_scale=time_scale,
            images=[Path(image) for image in self.images],
        )


async def surround_machines(args: argparse.Namespace, home: int) -> None:
    config = WorldConfig.read(args.config)
    port = _port_in(args.kubeconfig)
    await network.make_bridge()
    door = ApiDoor(home, port)
    # Our own clients, and those of the machines.
    async with door.standing((LOOPBACK, network.API)):
        ground = MachineRoom.read(args.machines).ground(f"https://{network.API}:{port}", config.time_scale)
        await surround(
            config,
            args.kubeconfig,
            args.ready,
            serving=front_door(args.certificate, args.key, args.front_proxy_authority),
            ledger=args.ledger,
            fleet=RealFleet(NamespaceMachines(ground, door), config.time_scale),
            bind=lambda: within(home, on_loopback),
        )


def _port_in(kubeconfig: Path) -> int:
    (cluster,) = yaml.safe_load(kubeconfig.read_text())["clusters"]
    port: int | None = urlsplit(cluster["cluster"]["server"]).port
    assert port is not None
    return port


def main() -> None:
    parser = arguments("harness.targets.node.surround")
    parser.add_argument("--machines", type=Path, required=True)
    args = parser.parse_args()
    asyncio.run(surround_machines(args, enter_new_network()))


if __name__ == "__main__":
    main()
