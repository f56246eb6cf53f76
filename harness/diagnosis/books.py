"""Answers whose two books differ: who stands between the server that sent and the client that received."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from harness.checks import causes
from harness.checks.units import count
from harness.diagnosis.case import SHOWN, Case, quote
from harness.diagnosis.scope import pods_hit
from harness.diagnosis.suspect import BETWEEN, GATEWAY, LOST_STREAMS, SERVER, Sure, Suspect
from harness.verdict import Evidence

_OTHERWISE = (
    "a proxy or the network between them could do the same: the gateway's own access log, parts in against parts "
)
_OTHERWISE += "out, would tell"
_NEARLY_ALL = 0.9
_ALIKE = 0.15
_ENOUGH = 5
_MANY = 10


def books(case: Case) -> Iterator[Suspect]:
    """By the findings of ``requests``: answers given twice, tokens lost, tokens repeated."""
    rows = [row for row in case.evidence("requests") if row.facts.get("ledger") is not None]
    if not rows:
        return
    compared = int(case.number("requests", "compared") or 0)
    twice = [row for row in rows if row.facts.get("answers_repeated")]
    if twice:
        yield _twice(case, twice, compared)
        return
    lost, repeated = (sum(int(row.facts.get(key) or 0) for row in rows) for key in ("lost", "repeated"))
    if not lost and not repeated:
        return
    sent = sum(_sent(row) for row in rows)
    off = lost or repeated
    verb = "dropped" if lost else "passed on twice"
    often = f", one in {round(sent / off)}" if sent else ""
    act = f"{verb} {count(off, 'token')} of {count(len(rows), 'answer')}{often}: the servers' own books are whole"
    yield _suspect(case, rows, act, compared)


def _twice(case: Case, rows: list[Evidence], compared: int) -> Suspect:
    many = len(rows) >= _NEARLY_ALL * compared
    repeated = sum(int(row.facts.get("repeated") or 0) for row in rows)
    if repeated and not many:
        act = (
            f"asked another replica in the middle of {count(len(rows), 'answer')}, and passed on the beginning again: "
        )
        act += f"{count(repeated, 'token')} came twice"
        change = "let it retry only what no server has begun to answer"
    else:
        share = "every request" if len(rows) == compared else count(len(rows), "request")
        act = f"sent {share} to two replicas at once, and both answered it"
        change = "turn off its mirroring, hedging or retries for requests that are not safe to repeat"
    return _suspect(case, rows, act, compared, change)


def _suspect(case: Case, rows: list[Evidence], act: str, compared: int, change: str = "") -> Suspect:
    pods = Counter(str(row.facts["pod"]) for row in rows if row.facts.get("pod"))
    one = len(pods) == 1 and len(rows) >= _ENOUGH and len(case.rows.places("pod")) > 1
    scope = f"hit: {len(rows)} of {compared} requests, {pods_hit(case, pods, list(case.rows.places('pod')))}"
    return Suspect(
        SERVER if one else GATEWAY,
        act,
        min(row.t_ns or 0 for row in rows),
        frozenset({"requests", "slo", "baseline"}),
        Sure.SEEN,
        scope.replace(", hit: ", ", of "),
        tuple(sorted(rows, key=lambda row: row.t_ns or 0)[:SHOWN]),
        "" if one else f"every server's answers differ alike, so no single server does it; {_OTHERWISE}",
        change,
    )


def _sent(row: Evidence) -> int:
    first = str(row.facts.get("sent") or "").partition(" ")[0]
    return int(first) if first.isdigit() else 0


def cut_after_a_time(case: Case) -> Iterator[Suspect]:
    """Cut streams that all lasted equally long, while no whole answer lasted longer: somebody's limit on time. One
    whose pod was going, and that lasted as long as the others, was cut for that reason too."""
    if sum(1 for _, cause in case.lost if cause.name in (causes.UNEXPLAINED, causes.GATEWAY)) < _ENOUGH:
        return
    lost = [
        (r, c) for r, c in case.lost if r.sent_ns is not None and r.end_ns is not None and r.first_token_ns is not None
    ]
    if len(lost) < _MANY:
        return
    lasted = np.array([(row.end_ns or 0) - (row.sent_ns or 0) for row, _ in lost], dtype=np.float64)
    typical = float(np.median(lasted))
    alike = np.abs(lasted - typical) <= _ALIKE * typical
    whole = (case.rows.numbers("end_ns") - case.rows.numbers("sent_ns"))[case.rows.ok]
    longer = int((whole > typical * (1 + _ALIKE)).sum())
    if alike.mean() < _NEARLY_ALL or longer or len(whole) < _ENOUGH:
        return
    own = [pair for pair, same in zip(lost, alike, strict=True) if same]
    pods = {row.pod for row, _ in own if row.pod}
    act = (
        f"cut {count(len(own), 'answer')} when {case.clock(round(typical))} had passed since they were asked for: no"
        " answer "
    )
    act += "of any replica lasted longer"
    yield Suspect(
        BETWEEN,
        act,
        min(row.end_ns or 0 for row, _ in own),
        LOST_STREAMS,
        Sure.INFERRED,
        pods_hit(case, pods, list(case.rows.places("pod"))),
        tuple(
            quote(row, f"{row.outcome} after {case.clock((row.end_ns or 0) - (row.sent_ns or 0))}")
            for row, _ in own[:SHOWN]
        ),
        "nothing of the cluster tells who has this limit: a timeout of the gateway, of a load balancer before it, or"
        " of the servers; the first of them whose log names these requests has it",
        f"look for a timeout of about {case.clock(round(typical))} on the way, and set it above the longest answer",
        frozenset(row.request_id for row, _ in own),
    )
