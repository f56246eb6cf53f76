"""Slow answers, and servers that send requests away: told from a queue by requests that met hardly any others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from harness.checks.rows import Mask
from harness.checks.units import count
from harness.diagnosis.case import SHOWN, Case, quote
from harness.diagnosis.lateness import limits
from harness.diagnosis.scope import pods_hit
from harness.diagnosis.suspect import SERVER, Sure, Suspect
from harness.history.tables import Outcome

_BREAKS = frozenset({"slo", "graceful_drain", "scale_up", "scale_down", "metrics_path", "capacity", "baseline"})
_SHARE = {"itl_ms": 0.1}
_MOST = 0.5
"""Of the requests that met no queue so many are late where the server itself is slow; a pause now and then hits those
that it meets."""
_ENOUGH = 8
_WORDS = {
    "ttft_ms": "gave the first token late",
    "ttft_sent_ms": "gave the first token late",
    "tpot_ms": "gave tokens slowly",
    "itl_ms": "stood still in the middle of answers",
    "e2e_ms": "took long to answer",
}
_OTHERWISE = "the gateway may hold answers back: the server's own histogram of the same time would tell"


def sent_away(case: Case) -> Iterator[Suspect]:
    rows = case.rows.where(case.rows.among("outcome", {Outcome.HTTP_429}))
    if not rows:
        return
    pods = Counter(row.pod for row in rows if row.pod)
    component = SERVER if pods else "the gateway"
    act = f"turned {count(len(rows), 'request')} of {len(case.rows)} away with status 429"
    yield Suspect(
        component,
        act,
        rows[0].sent_ns or 0,
        _BREAKS,
        scope=pods_hit(case, pods, list(case.rows.places("pod"))),
        seen=tuple(quote(row, f"429: {row.reason or 'no reason'}") for row in rows[:SHOWN]),
        change="raise the server's limit of requests at once, or let clients or the gateway wait and retry on 429",
        requests=frozenset(row.request_id for row in rows),
    )


def slow(case: Case) -> Iterator[Suspect]:
    """The first metric that is over its limit though its replica had little else to do: so the server is slow."""
    for metric, limit in limits(case).items():
        values = case.rows.latency(metric)
        known = ~np.isnan(values) & case.rows.ok
        late = known & (values > limit)
        if late.any() and (told := _told(case, metric, values, known, late)) is not None:
            yield told
            return


def _told(
    case: Case, metric: str, values: np.ndarray[tuple[int], np.dtype[np.float64]], known: Mask, late: Mask
) -> Suspect | None:
    rows = case.rows
    whose, among = _whose(case, known, late)
    alone = case.quiet & among
    if int(alone.sum()) < _ENOUGH or int((late & alone).sum()) < _SHARE.get(metric, _MOST) * int(alone.sum()):
        return None
    typical = float(np.median(values[late & alone]))
    spared = values[known & ~among]
    text = (
        f"{_WORDS[metric]}{f' to {whose}' if whose else ''}: {typical:.0f} ms as a rule even with three other"
        " requests at most"
    )
    text += f", in {int(late.sum())} of {count(int(known.sum()), 'answer')}"
    first = rows.where(late)[:SHOWN]
    pods = {row.pod for row in rows.where(late) if row.pod}
    scope = pods_hit(case, pods, list(rows.places("pod")))
    if whose and len(spared):
        scope += f"; not hit: the {len(spared)} other answers, {float(np.median(spared)):.0f} ms as a rule"
    return Suspect(
        SERVER,
        text,
        int(np.nanmin(rows.numbers("sent_ns")[late])),
        _BREAKS,
        Sure.SEEN,
        scope,
        tuple(quote(row, f"{metric} {getattr(row, metric):.0f}") for row in first),
        _OTHERWISE,
        "measure it alone, without the gateway: its steps, its batching, its GPU's clocks",
    )


def _whose(case: Case, known: Mask, late: Mask) -> tuple[str, Mask]:
    """A slice of the requests that is late while the rest is not: by the size of the prompt, by tenant."""
    rows = case.rows
    prompt = rows.numbers("planned_prompt_tokens")
    fine = known & ~late
    if fine.any():
        for size in (int(prompt[late].min()), int(np.percentile(prompt[late], 5))):
            long = known & (prompt >= size)
            if _parts(late, long, known & ~long):
                return f"prompts of about {size} tokens or more", long
        for tenant, places in rows.places("tenant").items():
            own = np.zeros(len(rows), dtype=np.bool_)
            own[places] = True
            if _parts(late, own & known, known & ~own):
                return f"requests of tenant {tenant}", own & known
    return "", known


def _parts(late: Mask, own: Mask, rest: Mask) -> bool:
    if not own.any() or int(rest.sum()) < _ENOUGH:
        return False
    mine, theirs = float(late[own].mean()), float(late[rest].mean())
    return mine > 0.8 and theirs < 0.1
