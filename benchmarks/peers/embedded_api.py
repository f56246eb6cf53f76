"""The embedded Kubernetes API with a thousand pods and nobody else, as a process of its own. Prints its port."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from random import Random

from aiohttp import web

from fakes.clock import WallClock
from fakes.kube.server import make_app
from fakes.kube.store import Store
from fakes.memory import collect_seldom


async def serve() -> None:
    store = Store(WallClock(datetime.now(UTC)), Random(1))
    runner = web.AppRunner(make_app(store), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until whoever started it has gone
    await runner.cleanup()


if __name__ == "__main__":
    collect_seldom()
    asyncio.run(serve())
