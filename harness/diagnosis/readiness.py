"""Requests that could not reach their pod: the pod was called Ready too early, or the router did not wait for that."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.checks import causes
from harness.checks.rows import Request
from harness.checks.units import count
from harness.diagnosis.case import SHOWN, Case, quote
from harness.diagnosis.scope import pods_hit
from harness.diagnosis.suspect import GATEWAY, LOST_STREAMS, PROBE, SERVER, Suspect
from harness.history.lives import ready
from harness.history.tables import Outcome

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]*[a-z0-9]")
_BREAKS = LOST_STREAMS | {"scale_up"}


def readiness(case: Case) -> Iterator[Suspect]:
    early: dict[str, list[Request]] = {}
    routed: dict[str, list[Request]] = {}
    fallen: dict[str, list[Request]] = {}
    for row in _unreached(case):
        for pod in [row.pod] if row.pod and row.pod in case.fates else _NAME.findall(row.reason or ""):
            if (life := case.pods.at(pod, row.sent_ns or 0)) is None:
                continue
            then = life.at(row.sent_ns or 0)
            kind = routed if then is None or not ready(then) else fallen if _served_before(case, pod, row) else early
            kind.setdefault(pod, []).append(row)
    if routed and len(_rows(routed)) >= len(_rows(early)):
        rows = _rows(routed)
        act = f"sent {count(len(rows), 'request')} to {count(len(routed), 'pod')} before the API called them Ready"
        yield _suspect(case, GATEWAY, act, routed, rows, "let it route only to endpoints whose condition ready is true")
    elif early:
        rows = _rows(early)
        after = [case.s((row.sent_ns or 0) - _ready_ns(case, pod, row)) for pod, own in early.items() for row in own]
        act = (
            f"let {count(len(early), 'pod')} be Ready before they served: {count(len(rows), 'request')} found nobody"
            " there, "
        )
        act += f"the last {max(after):.1f} s after that pod became Ready"
        yield _suspect(case, PROBE, act, early, rows, "let the readiness probe ask what only a loaded model answers")
    if fallen and not routed and not early:
        rows = _rows(fallen)
        act = (
            f"took no connection any more in {count(len(fallen), 'Ready pod')}: {count(len(rows), 'request')} were"
            " refused"
        )
        yield _suspect(case, SERVER, act, fallen, rows, "see its log of that moment, and let readiness fail with it")


def _served_before(case: Case, pod: str, row: Request) -> bool:
    places = case.rows.places("pod").get(pod)
    return places is not None and bool((case.rows.numbers("first_token_ns")[places] < (row.sent_ns or 0)).any())


def _unreached(case: Case) -> list[Request]:
    """5xx whose reason is that no connection could be made."""
    rows = case.rows.where(case.rows.among("outcome", {Outcome.HTTP_5XX, Outcome.CONNECT_REFUSED}))
    settled = {r.request_id for r, cause in case.lost if cause.explained and cause.name != causes.REFUSED}
    return [row for row in rows if "connection" in (row.reason or "") and row.request_id not in settled]


def _rows(of_pods: dict[str, list[Request]]) -> list[Request]:
    return sorted(
        {row.request_id: row for own in of_pods.values() for row in own}.values(), key=lambda row: row.sent_ns or 0
    )


def _ready_ns(case: Case, pod: str, row: Request) -> int:
    life = case.pods.at(pod, row.sent_ns or 0)
    event = life.when(ready) if life else None
    return event.t_ns if event else 0


def _suspect(
    case: Case, component: str, act: str, of_pods: dict[str, list[Request]], rows: list[Request], change: str
) -> Suspect:
    came = [fate.name for fate in case.fates.lives if fate.life.born_ns > case.start_ns]
    return Suspect(
        component,
        act,
        rows[0].sent_ns or 0,
        _BREAKS,
        scope=pods_hit(case, of_pods, came),
        seen=tuple(quote(row, f"{row.outcome}: {row.reason}") for row in rows[:SHOWN]),
        change=change,
        requests=frozenset(row.request_id for row in rows),
    )
