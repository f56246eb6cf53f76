"""The real programs of a run over HTTP, for the faults, which live in a process of their own.

GET /programs lists them; POST /programs/NAME/stop (SIGTERM), /kill (SIGKILL), /freeze (SIGSTOP) and /start do what they
say and answer when it is done. A program that was stopped here is not dead: the run goes on without it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from aiohttp import web

from harness.errors import HarnessError
from harness.stack.ports import HOST
from harness.stack.services import Services

VERBS = ("stop", "kill", "freeze", "start")


@contextlib.asynccontextmanager
async def serving_control(services: Services) -> AsyncIterator[str]:
    """Its URL, on a free port of this machine, for the length of the block."""
    runner = web.AppRunner(control_app(services))
    await runner.setup()
    try:
        site = web.TCPSite(runner, HOST, 0)
        await site.start()
        port = runner.addresses[0][1]
        yield f"http://{HOST}:{port}"
    finally:
        await runner.cleanup()


def control_app(services: Services) -> web.Application:
    async def programs(request: web.Request) -> web.Response:
        return web.json_response({"programs": _list(services)})

    async def turn(request: web.Request) -> web.Response:
        name, verb = request.match_info["name"], request.match_info["verb"]
        if verb not in VERBS:
            return web.json_response({"error": f"no verb {verb!r}; there is: {', '.join(VERBS)}"}, status=404)
        try:
            await _do(services, name, verb)
        except KeyError:
            known = ", ".join(services.pids)
            return web.json_response({"error": f"no program {name!r}; there is: {known}"}, status=404)
        except HarnessError as error:
            return web.json_response({"error": str(error)}, status=500)
        return web.json_response({"programs": _list(services)})

    app = web.Application()
    app.router.add_get("/programs", programs)
    app.router.add_post("/programs/{name}/{verb}", turn)
    return app


async def _do(services: Services, name: str, verb: str) -> None:
    if verb == "start":
        await services.resume(name)
    elif verb == "freeze":
        await services.freeze(name)
    else:
        await services.halt(name, hard=verb == "kill")


def _list(services: Services) -> list[dict[str, object]]:
    return [
        {
            "name": service.launch.name,
            "running": service.child.returncode is None,
            "halted": service.halted,
            "frozen": service.is_frozen,
            "pid": service.child.pid,
            "log": str(service.child.log),
        }
        for service in services.all
    ]
