"""``metrics.k8s.io`` as metrics-server serves it: CPU and memory of pods and nodes.

metrics-server scrapes every kubelet each 15 s and has a CPU figure for a container from its second scrape on; a node
that did not answer the last scrape has no metrics, nor have its pods. Nothing is scraped here: whoever asks gets what
the last scrape would have seen, with its time.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from zlib import crc32

from fakes.clock import WallClock, parse_stamp, stamp
from fakes.kube.status import status_body
from fakes.nodes.usage import ContainerUse
from fakes.timing import Timing
from harness.kube.port import NODE, POD, ApiError, Json, Kube, Resource

GROUP = "metrics.k8s.io"
RESOLUTION_S = 15.0
"""Scenario seconds between two scrapes, as metrics-server's own manifests set it."""

Uses = Callable[[], list[ContainerUse] | None]
"""What the containers of one node take; None while its kubelet does not answer."""


class ResourceMetrics:
    """``nodes`` is asked at each question: nodes come and go."""

    group = GROUP
    version = "v1beta1"

    def __init__(self, kube: Kube, wall: WallClock, timing: Timing, nodes: Callable[[], Mapping[str, Uses]]) -> None:
        self._kube = kube
        self._wall = wall
        self._period_s = timing.clock_s(RESOLUTION_S)
        self._nodes = nodes

    @property
    def resources(self) -> list[Json]:
        return [
            {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "list"]}
            for name, namespaced, kind in (("nodes", False, "NodeMetrics"), ("pods", True, "PodMetrics"))
        ]

    async def handle(self, path: str, query: Mapping[str, str]) -> tuple[int, Json]:
        """``path``: nodes[/NAME], pods, namespaces/NS/pods[/NAME]."""
        selector = query.get("labelSelector", "")
        try:
            match path.strip("/").split("/"):
                case ["nodes"]:
                    return 200, self._list("NodeMetricsList", await self._of_nodes(selector))
                case ["nodes", name]:
                    return self._one("nodemetrics", name, await self._of_nodes("", name))
                case ["pods"]:
                    return 200, self._list("PodMetricsList", await self._of_pods(None, selector))
                case ["namespaces", namespace, "pods"]:
                    return 200, self._list("PodMetricsList", await self._of_pods(namespace, selector))
                case ["namespaces", namespace, "pods", name]:
                    found = await self._of_pods(namespace, "", name)
                    return self._one("podmetrics", f"{namespace}/{name}", found)
        except ApiError as error:
            return error.status, dict(error.body)
        return 404, status_body(404, "NotFound", "the server could not find the requested resource")

    async def _of_pods(self, namespace: str | None, selector: str, name: str = "") -> list[Json]:
        pods = await self._wanted(POD, namespace, selector, name)
        by_node: dict[str, dict[tuple[str, str], list[ContainerUse]]] = {}
        found = []
        for pod in pods:
            meta, node = pod["metadata"], pod["spec"].get("nodeName") or ""
            if node not in by_node:
                by_node[node] = _by_pod(self._scraped(node))
            uses = by_node[node].get((meta["namespace"], meta["name"]), [])
            if uses and len(uses) == len(_running(pod)):
                containers = [{"name": u.container, "usage": _usage([u])} for u in uses]
                found.append(self._item("PodMetrics", meta, node) | {"containers": containers})
        return found

    async def _of_nodes(self, selector: str, name: str = "") -> list[Json]:
        found = []
        for node in await self._wanted(NODE, None, selector, name):
            meta = node["metadata"]
            uses = self._scraped(meta["name"])
            if uses is not None:
                found.append(self._item("NodeMetrics", meta, meta["name"]) | {"usage": _usage(uses)})
        return found

    async def _wanted(self, resource: Resource, namespace: str | None, selector: str, name: str) -> Iterable[Json]:
        listed = (await self._kube.list(resource, namespace, label_selector=selector)).items
        return [o for o in listed if not name or o["metadata"]["name"] == name]

    def _scraped(self, node: str) -> list[ContainerUse] | None:
        """Of the containers that two scrapes have seen."""
        ask = self._nodes().get(node)
        uses = ask() if ask is not None else None
        if uses is None:
            return None
        before = self._last_scrape(node) - timedelta(seconds=self._period_s)
        return [u for u in uses if parse_stamp(u.running_since) <= before]

    def _last_scrape(self, node: str) -> datetime:
        """Each node has an offset of its own within the period, by its name."""
        now_s = asyncio.get_running_loop().time()
        offset_s = crc32(node.encode()) / 2**32 * self._period_s
        return self._wall.now() - timedelta(seconds=(now_s - offset_s) % self._period_s)

    def _item(self, kind: str, meta: Json, node: str) -> Json:
        kept = {k: meta[k] for k in ("name", "namespace", "labels") if k in meta}
        return {
            "kind": kind,
            "apiVersion": f"{GROUP}/{self.version}",
            "metadata": kept | {"creationTimestamp": self._wall.stamp()},
            "timestamp": stamp(self._last_scrape(node)),
            "window": f"{self._period_s:g}s",
        }

    def _list(self, kind: str, items: list[Json]) -> Json:
        bare = [{k: v for k, v in item.items() if k not in ("kind", "apiVersion")} for item in items]
        return {"kind": kind, "apiVersion": f"{GROUP}/{self.version}", "metadata": {}, "items": bare}

    def _one(self, what: str, name: str, found: list[Json]) -> tuple[int, Json]:
        if found:
            return 200, found[0]
        details: Json = {"name": name, "group": GROUP, "kind": what}
        return 404, status_body(404, "NotFound", f'{what}.{GROUP} "{name}" not found', details)


def _by_pod(uses: list[ContainerUse] | None) -> dict[tuple[str, str], list[ContainerUse]]:
    found: dict[tuple[str, str], list[ContainerUse]] = {}
    for use in uses or ():
        found.setdefault((use.namespace, use.pod), []).append(use)
    return found


def _running(pod: Json) -> list[str]:
    """Names of the containers that should have metrics: a pod is served with all of them, or not at all."""
    status = pod.get("status") or {}
    statuses = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    return [s["name"] for s in statuses if "running" in (s.get("state") or {})]


def _usage(uses: Iterable[ContainerUse]) -> Json:
    listed = list(uses)
    nano = math.ceil(sum(u.cpu_milli for u in listed) * 1_000_000)
    return {"cpu": f"{nano}n", "memory": f"{sum(u.memory_bytes for u in listed) // 1024}Ki"}
