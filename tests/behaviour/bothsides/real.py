"""The real side: the same scenarios and the same hollow nodes, against a real control plane, in real time."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import web
from bothsides.given_metrics import CUSTOM, EXTERNAL, GivenApi, GivenMetrics
from bothsides.hollow import Health, HollowNodes
from bothsides.plane import Plane, real_plane
from bothsides.play import ROOM, Played, nodes_usable, play
from bothsides.stage import Scenario, Stage

from fakes.clock import WallClock
from harness.kube.http import HttpKube
from harness.kube.port import LEASE, NAMESPACE, NODE, POD, SERVICE, ApiError, Json, NotFound, Resource
from harness.stack.find import Binaries
from harness.stack.ports import HOST

API_SERVICE = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", False)
AT_ONCE = 3
"""Scenarios that share the cluster run so many at a time."""


class RealSide:
    def __init__(self, plane: Plane, kube: HttpKube, node_kube: HttpKube, tasks: asyncio.TaskGroup) -> None:
        self._plane = plane
        self._kube = kube
        self._node_kube = node_kube
        self._tasks = tasks
        self._wall = WallClock(datetime.now(UTC))
        self.metrics = GivenMetrics(kube, self._wall)
        self._serial = 0

    async def play_together(self, scenarios: Sequence[Scenario]) -> dict[str, Played | Exception]:
        """Scenarios without nodes of their own, some at a time on shared ones."""
        health = Health()
        nodes = HollowNodes(self._node_kube, self._wall, self._tasks, health)
        watching = self._tasks.create_task(nodes.run())
        for spec in ROOM:
            nodes.start(spec)
        setup = Stage(self._kube, "", nodes, health, self.metrics)
        setup.began_s = asyncio.get_running_loop().time()
        await nodes_usable(setup, ROOM)
        turn = asyncio.Semaphore(AT_ONCE)

        async def one(scenario: Scenario) -> Played | Exception:
            async with turn:
                return await self._play(scenario, nodes, health)

        played = await asyncio.gather(*map(one, scenarios))
        await self._clear(nodes, [spec.name for spec in ROOM])
        watching.cancel()
        return dict(zip((s.name for s in scenarios), played, strict=True))

    async def play_alone(self, scenario: Scenario) -> Played | Exception:
        health = Health()
        nodes = HollowNodes(self._node_kube, self._wall, self._tasks, health)
        watching = self._tasks.create_task(nodes.run())
        try:
            return await self._play(scenario, nodes, health)
        finally:
            await self._clear(nodes, [spec.name for spec in scenario.nodes])
            watching.cancel()

    async def _play(self, scenario: Scenario, nodes: HollowNodes, health: Health) -> Played | Exception:
        self._serial += 1
        namespace = f"stage-{self._serial}"
        stage = Stage(self._kube, namespace, nodes, health, self.metrics)
        stage.began_s = asyncio.get_running_loop().time()
        stage.kubeconfig = str(self._plane.kubeconfig)
        try:
            return await play(scenario, stage, nodes_there=not scenario.alone)
        except (ApiError, ConnectionError, TimeoutError) as error:
            return error
        finally:
            with contextlib.suppress(ApiError):
                await self._kube.delete(NAMESPACE, namespace)

    async def _clear(self, nodes: HollowNodes, names: Sequence[str]) -> None:
        """Nothing of a scenario may reach the next one: no kubelet, no node, no pod."""
        nodes.stop_all()
        for name in names:
            for resource, namespace in ((NODE, None), (LEASE, "kube-node-lease")):
                with contextlib.suppress(NotFound):
                    await self._kube.delete(resource, name, namespace)
        for _ in range(100):
            pods = (await self._kube.list(POD)).items
            if not pods:
                return
            for pod in pods:
                with contextlib.suppress(ApiError):
                    await self._kube.delete(POD, pod["metadata"]["name"], pod["metadata"]["namespace"], grace_s=0)
            await asyncio.sleep(0.2)
        raise RuntimeError("pods of a scenario do not go away")


@contextlib.asynccontextmanager
async def real_side(binaries: Binaries, folder: Path) -> AsyncIterator[RealSide]:
    async with (
        real_plane(binaries, folder) as plane,
        HttpKube(plane.kubeconfig) as kube,
        HttpKube(plane.kubeconfig, field_manager="kubelet") as node_kube,
        asyncio.TaskGroup() as tasks,
    ):
        side = RealSide(plane, kube, node_kube, tasks)
        runner = await _serve(side.metrics, plane.tls)
        try:
            await _register(kube, runner.addresses[0][1])
            yield side
        finally:
            await runner.cleanup()


async def _serve(metrics: GivenMetrics, tls: ssl.SSLContext) -> web.AppRunner:
    apis = {(api.group, api.version): api for api in metrics.apis()}

    async def answer(request: web.Request) -> web.Response:
        api: GivenApi = apis[request.match_info["group"], request.match_info["version"]]
        rest = request.match_info["rest"].strip("/")
        if not rest:
            group_version = f"{api.group}/{api.version}"
            listed = {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": group_version,
                "resources": api.resources,
            }
            return web.json_response(listed)
        status, body = await api.handle(rest, request.query)
        return web.json_response(body, status=status)

    app = web.Application()
    app.router.add_get("/apis/{group}/{version}{rest:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0, ssl_context=tls).start()
    return runner


async def _register(kube: HttpKube, port: int) -> None:
    """The API server reaches the adapter through a Service of type ExternalName: there is no proxy here."""
    service: Json = {"metadata": {"name": "adapter"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    await kube.create(SERVICE, service, "kube-system")
    for group, version in ((CUSTOM, "v1beta1"), (CUSTOM, "v1beta2"), (EXTERNAL, "v1beta1")):
        where = {"name": "adapter", "namespace": "kube-system", "port": port}
        spec: Json = {
            "group": group, "version": version, "service": where, "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100, "versionPriority": 100,
        }  # fmt: skip
        await kube.create(API_SERVICE, {"metadata": {"name": f"{version}.{group}"}, "spec": spec})
