"""Requests given to a replica far behind while another stood ready with room, or to none: who chose so, and by what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness.checks.units import count
from harness.diagnosis.case import SHOWN, Case, quote
from harness.diagnosis.gone import process_gone
from harness.diagnosis.scope import around_the_fault, pods_hit
from harness.diagnosis.suspect import GATEWAY, LOST_STREAMS, PICKER, Suspect
from harness.history.tables import FaultEvent, FaultStage, Outcome

_BREAKS = frozenset({"routing", "slo", "baseline"})
_PICKERS_ADDON = "epp"
_MUTE = "pod_metrics_down"
_NO_CHOICE = "endpoint picker did not choose"
"""What a gateway answers for a picker that gave no answer (500: an InferencePool fails closed by default)."""


def routers(case: Case) -> Iterator[Suspect]:
    """Who chooses is the endpoint picker where the run had one, else the gateway. That the metrics of the replica it
    chose could not be read is known only where a fault made them so."""
    rows = case.evidence("routing")
    times = [row.t_ns for row in rows if row.t_ns is not None]
    if not times:
        return
    chosen = Counter(str(row.facts.get("pod")) for row in rows)
    pod, most = chosen.most_common(1)[0]
    picker = _PICKERS_ADDON in case.history.run.versions
    placed, apart = case.number("routing", "placed"), case.number("routing", "apart_max")
    act = f"sent {len(rows)} of {placed} requests to a replica that had {apart} or more above another that was ready"
    act += f", {most} of them to {pod}" if len(chosen) > 1 else f": all to {pod}"
    change = "see its scorers and their weights" if picker else "let it go by requests in flight"
    if (mute := _mute(case, pod, min(times))) is not None:
        act += f", whose metrics failed from {case.at(mute.t_ns)} of the load on: it went by what it had read before"
        change = (
            "let readiness fail with the metrics, and alert on failed scrapes, so that a replica that cannot be read is"
            " not taken for an idle one"
        )
    yield Suspect(
        PICKER if picker else GATEWAY,
        act,
        min(times),
        _BREAKS,
        scope=pods_hit(case, chosen, [name for name, fate in case.fates.items() if fate.life.seen]),
        seen=rows[:SHOWN],
        change=change,
    )


def pickers(case: Case) -> Iterator[Suspect]:
    """Requests that the endpoint picker gave to nobody, because it gave no answer: replicas have no part in that."""
    errors = case.rows.where(case.rows.among("outcome", {Outcome.HTTP_5XX}))
    rows = [row for row in errors if row.pod is None and _NO_CHOICE in (row.reason or "")]
    if not rows:
        return
    times = sorted(row.sent_ns or 0 for row in rows)
    gone = process_gone(case, _PICKERS_ADDON, times[0], times[-1])
    yield Suspect(
        PICKER,
        f"chose no replica for {count(len(rows), 'request')} of {len(case.rows)}, from {case.at(times[0])} to "
        f"{case.at(times[-1])} of the load: each was answered with an error{gone}",
        times[0],
        LOST_STREAMS,
        scope=around_the_fault(case, times),
        seen=tuple(quote(row, f"{row.status}: {row.reason}") for row in rows[:SHOWN]),
        change=(
            "run more than one replica of it, or let the InferencePool fail open (failureMode: FailOpen), so that "
            "requests go to any replica while it is gone"
        ),
        requests=frozenset(row.request_id for row in rows),
    )


def _mute(case: Case, pod: str, before_ns: int) -> FaultEvent | None:
    return next(
        (
            f
            for f in case.history.faults
            if f.fault == _MUTE
            and f.stage is FaultStage.INJECTED
            and f.t_ns <= before_ns
            and any(target.rpartition("/")[2] == pod for target in f.targets)
        ),
        None,
    )
