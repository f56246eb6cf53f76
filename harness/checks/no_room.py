"""Pods that found no room, and which of them must find it for the system to be as it was before a fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from harness.history.lives import RUN_LABEL, Json, going, labels_of, lives, name_of, node_of, owner_of, without_room
from harness.history.recording import once

if TYPE_CHECKING:
    from harness.history.reader import History


class NoRoom:
    """Those of the workload's namespace and of objects that this run made must find room; so must one of others that
    the fault drove out, whose owner has fewer pods in place than when the first fault struck. What others bring
    meanwhile, and what waited before, is their own affair."""

    def __init__(self, history: History, workload: Iterable[str], struck_ns: int) -> None:
        """``workload``: the uids of its pods."""
        pods = lives(history.objects, "Pod")
        namespace = history.run.workload.get("namespace", "")
        ours = {*workload, *_made_by_the_run(history)}
        before = {pod.uid: obj for pod in pods if (obj := pod.at(struck_ns)) is not None}
        self._waited = {uid for uid, obj in before.items() if without_room(obj)} - ours
        self._near = {pod.uid for pod in pods if pod.namespace == namespace} | ours
        self._in_place = _in_place(before.values())

    def of(self, pods: Mapping[str, Json]) -> list[str]:
        """The names of those of ``pods``, by uid, that must find room and have none."""
        waiting = {uid: pod for uid, pod in pods.items() if uid not in self._waited and without_room(pod)}
        if not waiting:
            return []
        now = _in_place(pods.values())
        driven_out = {owner for owner, placed in self._in_place.items() if now[owner] < placed}
        return sorted(name_of(pod) for uid, pod in waiting.items() if uid in self._near or owner_of(pod) in driven_out)


def _in_place(pods: Iterable[Json]) -> Counter[str]:
    """By owner. One that ended well had its place; of those without an owner nothing brings back another."""
    placed = (pod for pod in pods if node_of(pod) and not going(pod) and not _failed(pod))
    return Counter(owner for pod in placed if (owner := owner_of(pod)))


def _failed(pod: Json) -> bool:
    return bool(pod.get("status", {}).get("phase") == "Failed")


@once
def _made_by_the_run(history: History) -> frozenset[str]:
    """Pods that carry the run's label, or belong to what does. What was there before the load is of another run, which
    left it behind."""
    owner: dict[str, str] = {}
    labelled: set[str] = set()
    for event in history.objects:
        if event.uid in owner:
            continue
        owner[event.uid] = owner_of(event.object)
        if event.t_ns >= history.run.load_start_ns and RUN_LABEL in labels_of(event.object):
            labelled.add(event.uid)
    found: set[str] = set()
    for pod in lives(history.objects, "Pod"):
        above, line = pod.uid, set[str]()
        while above and above not in line:
            line.add(above)
            above = owner.get(above, "")
        if line & labelled:
            found.add(pod.uid)
    return frozenset(found)
