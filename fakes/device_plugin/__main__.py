"""``python -m fakes.device_plugin``: a kubelet device plugin for GPUs that are not there."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from fakes.control.knobs import ControlError
from fakes.device_plugin.orders import follow_file, listen, order
from fakes.device_plugin.plugin import DEVICE_PLUGINS, Plugin
from fakes.device_plugin.resource import BadResource, read_resources
from fakes.device_plugin.switches import ALL, ENV_PREFIX, SWITCHES, from_environment, read_value

BAD_INPUT = 64
DEFAULT_RESOURCES = "nvidia.com/gpu=4"


def _parser() -> argparse.ArgumentParser:
    lines = [f"  {name:<15} {s.takes:<21} {s.about}" for name, s in SWITCHES.items()]
    parser = argparse.ArgumentParser(
        prog="python -m fakes.device_plugin",
        description="A kubelet device plugin (v1beta1) that offers GPUs which are not there. Writes one JSON line for "
        "each thing that happens.",
        epilog="\n".join(
            [
                "switches, all at their default at first; null turns one back:",
                *lines,
                "",
                f"They are set by environment ({ENV_PREFIX}UNHEALTHY=2, for all resources), by --switches FILE,",
                "and over --socket: `python -m fakes.device_plugin turn SWITCH VALUE --socket PATH`.",
            ]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    run = commands.add_parser("run", help="be the plugin; this is what no command means")
    for place in (parser, run):
        _add_run_options(place)
    for name, about in (("turn", "turn a switch of a running plugin"), ("show", "say how a running plugin stands")):
        asking = commands.add_parser(name, help=about)
        if name == "turn":
            asking.add_argument("switch", choices=list(SWITCHES))
            asking.add_argument("value", type=read_value, help="JSON, or text; null: its default")
            asking.add_argument("--resource", default=ALL, help="default: all")
        asking.add_argument("--socket", type=Path, required=True)
    return parser


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    env = os.environ
    parser.add_argument(
        "--resources", nargs="+", metavar="NAME=COUNT",
        default=[env.get(ENV_PREFIX + "RESOURCES", DEFAULT_RESOURCES)],
        help=f"what it offers; default: ${ENV_PREFIX}RESOURCES, or {DEFAULT_RESOURCES}",
    )  # fmt: skip
    parser.add_argument("--dir", type=Path, default=DEVICE_PLUGINS, help="the kubelet's folder; default: %(default)s")
    parser.add_argument(
        "--node", default=env.get("NODE_NAME", socket.gethostname()),
        help="the ids of the devices are made from it; default: $NODE_NAME, or the host's name",
    )  # fmt: skip
    parser.add_argument("--numa-nodes", type=int, default=1, help="that the devices are spread over; default: 1")
    parser.add_argument("--switches", type=Path, metavar="FILE", help='{"nvidia.com/gpu": {"unhealthy": 2}, "*": {}}')
    parser.add_argument("--socket", type=Path, help="listens there for orders")


def say(what: str, **details: Any) -> None:
    print(json.dumps({"event": what, **details}), flush=True)


@asynccontextmanager
async def _following(path: Path, plugin: Plugin) -> AsyncIterator[None]:
    task = asyncio.create_task(follow_file(path, plugin, say))
    try:
        yield
    finally:
        task.cancel()


async def _run(args: argparse.Namespace) -> None:
    plugin = Plugin(read_resources(args.resources, args.numa_nodes), args.dir, args.node, say)
    for switch, value in from_environment(os.environ).items():
        plugin.turn(switch, ALL, value)
    running = asyncio.ensure_future(plugin.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.cancel)
    async with AsyncExitStack() as stack:
        if args.socket:
            await stack.enter_async_context(listen(args.socket, plugin))
        if args.switches:
            await stack.enter_async_context(_following(args.switches, plugin))
        await asyncio.wait({running})
    if not running.cancelled():
        running.result()


def main() -> int:
    args = _parser().parse_args()
    try:
        if args.command in (None, "run"):
            asyncio.run(_run(args))
            return 0
        message = {} if args.command == "show" else vars(args) | {}
        message = {key: message[key] for key in ("switch", "value", "resource") if key in message}
        answer = asyncio.run(order(args.socket, message))
    except (BadResource, ControlError) as error:
        print(f"device plugin: {error}", file=sys.stderr)
        return BAD_INPUT
    except OSError as error:
        print(f"device plugin: {error}", file=sys.stderr)
        return 1
    print(json.dumps(answer, indent=1))
    return BAD_INPUT if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main())
