"""The same bytes as an API server's, and nothing behind them: what the HTTP server alone costs.

``python benchmarks/peers/bare_api.py FOLDER`` answers GET /object and /list with the files ``object`` and ``list`` of
the folder; each PATCH of /object is answered with ``object`` and sends ``line`` to whoever reads /watch. Prints its
port.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from aiohttp import web


async def serve(folder: Path) -> None:
    obj, listed, line = ((folder / name).read_bytes() for name in ("object", "list", "line"))
    watchers: list[asyncio.Queue[bytes]] = []

    def answer(body: bytes) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    async def get(request: web.Request) -> web.Response:
        return answer(obj)

    async def list_(request: web.Request) -> web.Response:
        return answer(listed)

    async def patch(request: web.Request) -> web.Response:
        await request.read()
        for queue in watchers:
            queue.put_nowait(line)
        return answer(obj)

    async def watch(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        watchers.append(queue)
        while True:
            await response.write(await queue.get())

    app = web.Application()
    app.add_routes([web.get("/object", get), web.get("/list", list_), web.get("/watch", watch)])
    app.router.add_patch("/object", patch)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until whoever started it has gone
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
