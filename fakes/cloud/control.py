"""The cloud's own HTTP API: instances and their interruptions. The harness orders its faults here."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping

from aiohttp import web
from aiohttp.typedefs import Handler

from fakes.cloud.cloud import Cloud, Instance, UnknownInstance, WrongState
from harness.kube.port import Json

CLOUD = web.AppKey("cloud", Cloud)


class BadBody(Exception):
    """The request's body is not what this call takes."""


def control_app(cloud: Cloud, world_info: Mapping[str, object]) -> web.Application:
    """``world_info`` is served as it is at ``/v1/world``."""

    async def world(request: web.Request) -> web.Response:
        return web.json_response(dict(world_info))

    app = web.Application(middlewares=[_errors])
    app[CLOUD] = cloud
    app.router.add_get("/v1/world", world)
    app.router.add_get("/v1/instances", _list)
    app.router.add_post("/v1/instances/{id}/interruption", _interrupt)
    app.router.add_delete("/v1/instances/{id}/interruption", _cancel)
    return app


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadBody as error:
        return _error(400, str(error))
    except UnknownInstance as error:
        return _error(404, str(error))
    except WrongState as error:
        return _error(409, str(error))
    except web.HTTPException as error:
        return _error(error.status, f"{request.method} {request.path}: {error.reason}")


async def _list(request: web.Request) -> web.Response:
    return web.json_response({"items": [_view(i) for i in request.app[CLOUD].instances.values()]})


async def _interrupt(request: web.Request) -> web.Response:
    notice_s = _notice_s(await request.text())
    return web.json_response(_view(request.app[CLOUD].interrupt(request.match_info["id"], notice_s)), status=201)


async def _cancel(request: web.Request) -> web.Response:
    cloud, id = request.app[CLOUD], request.match_info["id"]
    cloud.cancel_interruption(id)
    return web.json_response(_view(cloud.get(id)))


def _notice_s(text: str) -> float:
    want = 'the body must be {"notice_s": SECONDS}, scenario seconds, 0 or more'
    try:
        body = json.loads(text)
    except ValueError as error:
        raise BadBody(f"the body is not JSON ({error}); {want}") from error
    if not isinstance(body, dict) or set(body) != {"notice_s"}:
        raise BadBody(f"{want}; got {text[:200]}")
    notice_s = body["notice_s"]
    if isinstance(notice_s, bool) or not isinstance(notice_s, int | float):
        raise BadBody(f"notice_s must be a number; got {json.dumps(notice_s)[:200]}")
    if not math.isfinite(notice_s) or notice_s < 0:
        raise BadBody(f"notice_s must be 0 or more; got {notice_s}")
    return float(notice_s)


def _view(instance: Instance) -> Json:
    """``interrupt_at_s`` is in seconds of the world's monotonic clock; ``interrupt_in_s`` counts down on it."""
    at_s = instance.interrupt_at_s
    return {
        "id": instance.id,
        "node": instance.node,
        "pool": instance.pool.name,
        "capacity_type": instance.pool.capacity_type,
        "price_per_hour": instance.pool.price_per_hour,
        "state": instance.state.value,
        "interrupt_at_s": at_s,
        "interrupt_in_s": None if at_s is None else max(0.0, at_s - asyncio.get_running_loop().time()),
    }


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=status)
