"""GET pods/NAME/log: what a pod's containers have written, told by whoever runs them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from fakes.clock import parse_stamp
from fakes.kube.status import bad_request, bad_value, forbidden_field, invalid
from harness.kube.port import Json, Resource


class NoLogs(Exception):
    """There is nothing to read. The message is for people."""


class PodLogs(Protocol):
    """The port to the nodes' side."""

    def read(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        previous: bool = False,
        tail_lines: int | None = None,
        since: datetime | None = None,
        timestamps: bool = False,
        limit_bytes: int | None = None,
    ) -> str:
        """Raises ``NoLogs`` for a container that never had a process, or no earlier one."""
        ...

    def follow(self, namespace: str, pod: str, container: str, *, timestamps: bool = False) -> AsyncIterator[str]:
        """The lines that come after those that are there now, until the process ends."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """What of which log."""

    namespace: str
    pod: str
    container: str
    previous: bool
    tail_lines: int | None
    since: datetime | None
    timestamps: bool
    limit_bytes: int | None
    follow: bool


def container_of(pod: Json, wanted: str | None) -> str:
    """The container whose log is meant; without a name only where there is no choice."""
    spec = pod["spec"]
    own = [c["name"] for c in spec.get("containers") or []]
    initial = [c["name"] for c in spec.get("initContainers") or []]
    name = pod["metadata"]["name"]
    if wanted:
        if wanted not in (*own, *initial):
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(own) == 1 and not initial:
        return str(own[0])
    choices = f"choose one of: [{' '.join([*initial, *own])}]"
    if initial:
        choices = f"choose one of: [{' '.join(own)}] or one of the init containers: [{' '.join(initial)}]"
    raise bad_request(f"a container name must be specified for pod {name}, {choices}")


def asked(pod: Json, query: Mapping[str, str], numbers: Mapping[str, int | None], now: datetime) -> Asked:
    """``numbers`` are those of the query, parsed. Raises 400 or 422 for what cannot be meant."""
    meta = pod["metadata"]
    causes = []
    if query.get("sinceTime") and numbers.get("sinceSeconds") is not None:
        text = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        causes.append(forbidden_field("[]", text))
    tail = numbers.get("tailLines")
    if tail is not None and tail < 0:
        causes.append(bad_value("tailLines", tail, "must be greater than or equal to 0"))
    for name in ("limitBytes", "sinceSeconds"):
        value = numbers.get(name)
        if value is not None and value < 1:
            causes.append(bad_value(name, value, "must be greater than 0"))
    if causes:
        raise invalid(_LOG_OPTIONS, meta["name"], causes)
    container = container_of(pod, query.get("container"))
    since = None
    if seconds := numbers.get("sinceSeconds"):
        since = now - timedelta(seconds=seconds)
    elif query.get("sinceTime"):
        try:
            since = parse_stamp(query["sinceTime"])
        except ValueError:
            raise bad_request(f'parsing time "{query["sinceTime"]}": it is no RFC 3339 time') from None
    return Asked(
        meta["namespace"], meta["name"], container, is_on(query.get("previous")), numbers.get("tailLines"), since,
        is_on(query.get("timestamps")), numbers.get("limitBytes"), is_on(query.get("follow")),
    )  # fmt: skip


_LOG_OPTIONS = Resource("", "v1", "podlogoptions", "PodLogOptions", True)


def is_on(value: str | None) -> bool:
    return value is not None and value.lower() not in ("false", "0")


def read_log(logs: PodLogs, what: Asked) -> str:
    try:
        return logs.read(
            what.namespace, what.pod, what.container, previous=what.previous, tail_lines=what.tail_lines,
            since=what.since, timestamps=what.timestamps, limit_bytes=what.limit_bytes,
        )  # fmt: skip
    except NoLogs as e:
        raise bad_request(str(e)) from None
