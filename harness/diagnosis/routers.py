"""Requests given to a replica far behind while another stood ready with room: who chose so, and by what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from harness.diagnosis.case import SHOWN, Case
from harness.diagnosis.scope import pods_hit
from harness.diagnosis.suspect import GATEWAY, PICKER, Suspect
from harness.history.tables import FaultEvent, FaultStage

_BREAKS = frozenset({"routing", "slo", "baseline"})
_PICKERS_ADDON = "epp"
_MUTE = "pod_metrics_down"


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
