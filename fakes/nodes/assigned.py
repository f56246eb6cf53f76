"""Tells each kubelet of the pods bound to it. One watch of all pods serves every node of a world."""

from __future__ import annotations

from collections.abc import Callable

from fakes.controllers.informer import Informer
from harness.kube.port import EventType, Json

OnPod = Callable[[EventType, Json], None]


class AssignedPods:
    def __init__(self, pods: Informer) -> None:
        self._pods = pods
        self._kubelets: dict[str, OnPod] = {}
        pods.on_change(self._changed)

    def subscribe(self, node: str, on_pod: OnPod) -> None:
        """``on_pod`` hears at once of the pods that are there already."""
        self._kubelets[node] = on_pod
        for pod in self._pods.values():
            if pod["spec"].get("nodeName") == node:
                on_pod(EventType.ADDED, pod)

    def unsubscribe(self, node: str) -> None:
        self._kubelets.pop(node, None)

    def _changed(self, type: EventType, pod: Json, old: Json | None) -> None:
        on_pod = self._kubelets.get(pod["spec"].get("nodeName") or "")
        if on_pod is not None:
            on_pod(type, pod)
