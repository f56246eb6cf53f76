"""What EndpointSlices say of pods, by the pods' uids: who comes again under a name has an endpoint of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.history.lives import ByName, Json, lives
from harness.history.recording import once
from harness.history.tables import ObjectEvent

if TYPE_CHECKING:
    from harness.history.reader import History


@once
def endpoints_closed(history: History) -> dict[str, int]:
    """When the last slice that had a pod for new work took it out: not ready, terminating, or not listed any more."""
    pods = ByName(lives(history.objects, "Pod"))
    closed: dict[str, int] = {}
    for life in lives(history.objects, "EndpointSlice"):
        open_: set[str] = set()
        for event in life.seen:
            now = endpoints_of(event, pods, _takes_new_work)
            closed |= dict.fromkeys(open_ - now, event.t_ns)
            for pod in now - open_:
                closed.pop(pod, None)
            open_ = now
        if life.gone is not None:
            closed |= dict.fromkeys(open_, life.gone.t_ns)
    return closed


@once
def endpoints_terminating(history: History) -> dict[str, int]:
    """When a slice first said that a pod's endpoint is terminating."""
    pods = ByName(lives(history.objects, "Pod"))
    since: dict[str, int] = {}
    for life in lives(history.objects, "EndpointSlice"):
        for event in life.seen:
            for pod in endpoints_of(event, pods, lambda conditions: bool(conditions.get("terminating"))):
                since[pod] = min(event.t_ns, since.get(pod, event.t_ns))
    return since


def _takes_new_work(conditions: Json) -> bool:
    return conditions.get("ready") is not False and not conditions.get("terminating")


def endpoints_of(event: ObjectEvent, pods: ByName, holds: Callable[[Json], bool]) -> set[str]:
    """Those of whose endpoints it holds. One that is not told by uid is that which had the name then."""
    found: set[str] = set()
    for endpoint in event.object.get("endpoints") or ():
        ref = endpoint.get("targetRef") or {}
        if holds(endpoint.get("conditions") or {}):
            named = None if ref.get("uid") else pods.at(str(ref.get("name") or ""), event.t_ns)
            found.add(named.uid if named else str(ref.get("uid") or ""))
    return found
