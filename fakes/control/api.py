"""The control API over HTTP. The harness orders its faults here; Kubernetes never sees it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from aiohttp import web
from aiohttp.typedefs import Handler

from fakes.cloud.cloud import UnknownInstance, WrongState
from fakes.control.control import Control, view
from fakes.control.knobs import BadValue, ControlError
from harness.kube.port import Json

_NOTICE = '{"notice_s": SECONDS}, scenario seconds, 0 or more'
_VALUE = '{"value": VALUE}; null turns the knob back'
CONTROL = web.AppKey("control", Control)


def control_app(control: Control, world_info: Mapping[str, object]) -> web.Application:
    """``world_info`` is served as it is at ``/v1/world``."""

    async def world(request: web.Request) -> web.Response:
        return web.json_response(dict(world_info))

    app = web.Application(middlewares=[_errors])
    app[CONTROL] = control
    app.router.add_get("/v1/world", world)
    app.router.add_get("/v1/pools", _pools)
    app.router.add_get("/v1/watches", _watches)
    app.router.add_get("/v1/instances", _list)
    app.router.add_post("/v1/instances/{id}/interruption", _interrupt)
    app.router.add_delete("/v1/instances/{id}/interruption", _cancel)
    app.router.add_get("/v1/knobs", _turned)
    app.router.add_get("/v1/knobs/{knob}/{target:.+}", _knob)
    app.router.add_put("/v1/knobs/{knob}/{target:.+}", _turn)
    app.router.add_delete("/v1/knobs/{knob}/{target:.+}", _reset)
    app.router.add_post("/v1/verbs/{verb}/{target:.+}", _do)
    return app


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ControlError as error:
        return _error(error.status, str(error), error.reason)
    except UnknownInstance as error:
        return _error(404, str(error))
    except WrongState as error:
        return _error(409, str(error))
    except web.HTTPException as error:
        return _error(error.status, f"{request.method} {request.path}: {error.reason}")


async def _pools(request: web.Request) -> web.Response:
    return web.json_response({"items": request.app[CONTROL].pools()})


async def _watches(request: web.Request) -> web.Response:
    return web.json_response(request.app[CONTROL].watches_begun())


async def _list(request: web.Request) -> web.Response:
    return web.json_response({"items": request.app[CONTROL].instances()})


async def _interrupt(request: web.Request) -> web.Response:
    notice_s = _notice_s(await _body(request, _NOTICE))
    return web.json_response(view(request.app[CONTROL].cloud.interrupt(request.match_info["id"], notice_s)), status=201)


async def _cancel(request: web.Request) -> web.Response:
    cloud, id = request.app[CONTROL].cloud, request.match_info["id"]
    cloud.cancel_interruption(id)
    return web.json_response(view(cloud.get(id)))


async def _turned(request: web.Request) -> web.Response:
    turned = request.app[CONTROL].knobs.turned()
    return web.json_response({"items": [{"knob": k, "target": t, "value": v} for (k, t), v in sorted(turned.items())]})


async def _knob(request: web.Request) -> web.Response:
    knob, target = request.match_info["knob"], request.match_info["target"]
    return web.json_response({"value": request.app[CONTROL].knobs.value(knob, target)})


async def _turn(request: web.Request) -> web.Response:
    body = await _body(request, _VALUE)
    if set(body) != {"value"}:
        raise BadValue(f"the body must be {_VALUE}")
    return await _turned_to(request, body["value"])


async def _reset(request: web.Request) -> web.Response:
    return await _turned_to(request, None)


async def _turned_to(request: web.Request, value: object) -> web.Response:
    await request.app[CONTROL].knobs.turn(request.match_info["knob"], request.match_info["target"], value)
    return web.json_response({"value": value})


async def _do(request: web.Request) -> web.Response:
    arguments = await _body(request, "an object")
    await request.app[CONTROL].do(request.match_info["verb"], request.match_info["target"], arguments)
    return web.json_response({})


async def _body(request: web.Request, want: str) -> Json:
    text = await request.text()
    try:
        body = json.loads(text)
    except ValueError as error:
        raise BadValue(f"the body is not JSON ({error}); it must be {want}") from error
    if not isinstance(body, dict):
        raise BadValue(f"the body must be {want}; got {text[:200]}")
    return body


def _notice_s(body: Json) -> float:
    if set(body) != {"notice_s"}:
        raise BadValue(f"the body must be {_NOTICE}; got {body}")
    notice_s = body["notice_s"]
    if isinstance(notice_s, bool) or not isinstance(notice_s, int | float):
        raise BadValue(f"notice_s must be a number; got {json.dumps(notice_s)[:200]}")
    if not math.isfinite(notice_s) or notice_s < 0:
        raise BadValue(f"notice_s must be 0 or more; got {notice_s}")
    return float(notice_s)


def _error(status: int, message: str, reason: str = "") -> web.Response:
    return web.json_response({"error": message} | ({"reason": reason} if reason else {}), status=status)
