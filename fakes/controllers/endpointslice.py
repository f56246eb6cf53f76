"""Keeps the EndpointSlices of every Service that has a selector."""

from __future__ import annotations

from fakes.clock import WallClock
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.endpoints import (
    MANAGED_BY_LABEL,
    MANAGER,
    SERVICE_LABEL,
    ZONE_LABEL,
    pair,
    selects,
    wanted_slices,
)
from fakes.controllers.informer import Informer, Key, key_of
from fakes.controllers.objects import (
    condition_status,
    controller_reference,
    is_terminal,
    is_terminating,
    merged,
    name_of,
    namespace_of,
    node_of,
    pod_ip,
    sorted_by_name,
)
from harness.kube.port import ENDPOINT_SLICE, NODE, POD, SERVICE, EventType, Json, Kube, NotFound


class EndpointSliceController:
    """``wall`` stamps nothing yet: slices carry no times of their own but the server's."""

    def __init__(self, kube: Kube, wall: WallClock) -> None:
        self._kube = kube
        self._wall = wall
        self._services = Informer(kube, SERVICE)
        self._pods = Informer(kube, POD)
        self._slices = Informer(kube, ENDPOINT_SLICE, label_selector=f"{MANAGED_BY_LABEL}={MANAGER}")
        self._nodes = Informer(kube, NODE)
        self._unseen: dict[Key, dict[str, Json]] = {}  # slices we made that the cache does not show yet
        self._loop: Reconciler[Key] = Reconciler(self._sync)
        self._services.on_change(lambda type, new, old: self._loop.queue.add(key_of(new)))
        self._pods.on_change(self._pod_changed)
        self._slices.on_change(self._slice_changed)

    async def run(self) -> None:
        await run_controller((self._nodes, self._pods, self._slices, self._services), self._loop.run)

    def _pod_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        if type is EventType.MODIFIED and old is not None and _seen_state(new) == _seen_state(old):
            return
        for service in self._services.values():
            if selects(service, new) or (old is not None and selects(service, old)):
                self._loop.queue.add(key_of(service))

    def _slice_changed(self, type: EventType, new: Json, old: Json | None) -> None:
        service = (namespace_of(new), (new["metadata"].get("labels") or {}).get(SERVICE_LABEL, ""))
        self._unseen.get(service, {}).pop(name_of(new), None)
        self._loop.queue.add(service)

    async def _sync(self, key: Key) -> None:
        service = self._services.objects.get(key)
        if service is None or is_terminating(service) or not service["spec"].get("selector"):
            return  # the slices of a deleted service go with it, by owner reference
        zones = {
            name_of(n): zone
            for n in self._nodes.objects.values()
            if (zone := (n["metadata"].get("labels") or {}).get(ZONE_LABEL))
        }
        wanted = wanted_slices(service, [p for p in self._pods.objects.values() if selects(service, p)], zones)
        pairs, surplus = pair(self._existing(key), wanted)
        for old, (endpoints, ports) in pairs:
            if old is None:
                await self._create(key, service, endpoints, ports)
            elif (old.get("endpoints") or []) != endpoints or (endpoints and (old.get("ports") or []) != ports):
                await self._kube.update(ENDPOINT_SLICE, merged(old, endpoints=endpoints, ports=ports))
        for old in surplus:
            try:
                await self._kube.delete(ENDPOINT_SLICE, name_of(old), namespace_of(old))
            except NotFound:
                continue

    def _existing(self, key: Key) -> list[Json]:
        cached = [
            s
            for s in self._slices.objects.values()
            if namespace_of(s) == key[0] and (s["metadata"].get("labels") or {}).get(SERVICE_LABEL) == key[1]
        ]
        names = {name_of(s) for s in cached}
        unseen = [s for s in self._unseen.get(key, {}).values() if name_of(s) not in names]
        return sorted_by_name(s for s in [*cached, *unseen] if not is_terminating(s))

    async def _create(self, key: Key, service: Json, endpoints: list[Json], ports: list[Json]) -> None:
        own_labels = service["metadata"].get("labels") or {}
        made = {
            "apiVersion": ENDPOINT_SLICE.api_version,
            "kind": ENDPOINT_SLICE.kind,
            "metadata": {
                "generateName": f"{name_of(service)}-",
                "namespace": key[0],
                "labels": {**own_labels, SERVICE_LABEL: key[1], MANAGED_BY_LABEL: MANAGER},
                "ownerReferences": [controller_reference(SERVICE, service)],
            },
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": ports,
        }
        created = await self._kube.create(ENDPOINT_SLICE, made, key[0])
        if (key[0], name_of(created)) not in self._slices.objects:
            self._unseen.setdefault(key, {})[name_of(created)] = created


def _seen_state(pod: Json) -> tuple[object, ...]:
    """What of a pod a slice shows."""
    return (
        pod["metadata"].get("labels"),
        is_terminating(pod),
        is_terminal(pod),
        condition_status(pod, "Ready"),
        pod_ip(pod),
        node_of(pod),
    )
