"""Latency limits hold for the promised share of requests, and enough of all requests are good."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from harness.checks.bounds import Claim, judge_share, n_to_pass
from harness.checks.rows import Mask, Numbers, Rows, nearest_rank, rows_of
from harness.checks.stories import slo_story
from harness.checks.units import count
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import QuantileLimit, SloSpec

NEEDS = ("load_offered", "machine_did_not_stall", "steady_before")
EVIDENCE_ROWS = 50

METRICS = ("ttft_ms", "ttft_sent_ms", "tpot_ms", "itl_ms", "e2e_ms")
_OF_STREAMS = frozenset({"ttft_ms", "ttft_sent_ms", "tpot_ms", "itl_ms"})
_BETWEEN_TOKENS = frozenset({"tpot_ms", "itl_ms"})


@dataclass(frozen=True, slots=True)
class _Part:
    """One key of the check, judged."""

    key: str
    claim: Claim
    text: str
    numbers: dict[str, Value]


def slo(history: History, spec: SloSpec) -> Finding:
    """UNKNOWN when too few requests were seen to be sure at 95 %, or none.

    A request that failed, timed out or was not sent counts as late in every limit. One that the client hung up by
    plan is left out. An answer of one token has no time per output token and is left out of those limits alone.
    Requests of one run are not independent, so the bounds are a floor of doubt, not all of it.
    """
    rows = rows_of(history)
    asked = _asked(rows, spec)
    planned = int(asked.sum())
    bad = asked & ~good(rows, spec.limits)
    parts = [_limit_part(rows, asked, limit) for limit in spec.limits]
    if spec.good_ratio_min is not None:
        parts.append(_good_part(int(bad.sum()), planned, spec.good_ratio_min))
    where = "the whole run" if spec.phase == "all" else f"phase {spec.phase}"
    whose = f" {spec.slice}" if spec.slice else ""
    status = _worst([part.claim.status for part in parts])
    numbers: dict[str, Value] = {"phase": spec.phase, "requests": planned}
    for part in parts:
        numbers |= part.numbers
    if not planned:
        sentence = f"no request{whose} was planned in {where}, so nothing was measured"
    else:
        order = sorted(parts, key=lambda part: _ORDER[part.claim.status])
        sentence = f"{count(planned, 'request')}{whose} in {where}: " + "; ".join(part.text for part in order)
    story = ""
    if status is Status.FAIL:
        texts = [part.text for part in parts if part.claim.status is Status.FAIL]
        story = slo_story(history, rows.where(bad), texts, f"{where}{whose}")
    evidence = _evidence(rows, bad, spec.limits)
    return Finding("slo", Role.CHECK, status, sentence, planned, numbers, evidence, NEEDS, story=story)


def _asked(rows: Rows, spec: SloSpec) -> Mask:
    """The requests that it is about; what a run of old did not record has no tenant and the priority 0."""
    asked = ~rows.hung_up_by_plan
    if spec.phase != "all":
        asked &= rows.among("phase", {spec.phase})
    if spec.tenant is not None:
        asked &= rows.among("tenant", {spec.tenant})
    if spec.priority is not None:
        asked &= np.nan_to_num(rows.numbers("priority")) == spec.priority
    prompt = rows.numbers("planned_prompt_tokens")
    if spec.prompt_tokens_min is not None:
        asked &= prompt >= spec.prompt_tokens_min
    if spec.prompt_tokens_max is not None:
        asked &= prompt <= spec.prompt_tokens_max
    return asked


def measured(rows: Rows, metric: str) -> Mask:
    """Which rows belong to the metric's population at all. An answer in one piece has no times of tokens."""
    belongs = rows.streamed if metric in _OF_STREAMS else np.ones(len(rows), dtype=np.bool_)
    if metric not in _BETWEEN_TOKENS:
        return belongs
    tokens = np.where(rows.ok, rows.numbers("output_tokens"), rows.numbers("planned_output_tokens"))
    several: Mask = belongs & ~(np.isnan(tokens) | (tokens == 0) | (tokens == 1))
    return several


def values_of(rows: Rows, metric: str) -> Numbers:
    """Infinite for a request that failed: its user still waits."""
    own = rows.latency(metric)
    return np.where(rows.ok & ~np.isnan(own), own, np.inf)


def late(rows: Rows, limit: QuantileLimit) -> Mask:
    over: Mask = measured(rows, limit.metric) & (values_of(rows, limit.metric) > limit.limit_ms)
    return over


def good(rows: Rows, limits: Sequence[QuantileLimit]) -> Mask:
    """Complete, and within the loosest limit of each metric."""
    found = rows.ok.copy()
    for limit in loosest(limits):
        found &= ~late(rows, limit)
    return found


def loosest(limits: Sequence[QuantileLimit]) -> list[QuantileLimit]:
    """With p50 and p99 of one metric, a single request is held to the p99's limit."""
    by_metric: dict[str, QuantileLimit] = {}
    for limit in limits:
        known = by_metric.get(limit.metric)
        if known is None or limit.limit_ms > known.limit_ms:
            by_metric[limit.metric] = limit
    return list(by_metric.values())


def _limit_part(rows: Rows, asked: Mask, limit: QuantileLimit) -> _Part:
    values = values_of(rows, limit.metric)[asked & measured(rows, limit.metric)]
    late = int((values > limit.limit_ms).sum())
    claim = judge_share(late, len(values), 1 - limit.quantile)
    figure = nearest_rank(values, limit.quantile)
    shown = (
        "not measured" if figure is None else f"{figure:.0f} ms" if math.isfinite(figure) else "beyond the failed ones"
    )
    text = (
        f"{limit.key} measured {shown} (limit {limit.limit_ms:.0f} ms), {late} of {len(values)} late"
        f"{_verdict_text(claim, f'{limit.quantile * 100:g}% in time')}"
    )
    finite = figure if figure is not None and math.isfinite(figure) else None
    numbers = {limit.key: finite, f"{limit.key}_limit": limit.limit_ms, **_claim_numbers(limit.key, claim)}
    return _Part(limit.key, claim, text, numbers)


def _good_part(bad: int, planned: int, good_ratio_min: float) -> _Part:
    claim = judge_share(bad, planned, 1 - good_ratio_min)
    good_ratio = 1 - bad / planned if planned else None
    shown = "not measured" if good_ratio is None else f"{good_ratio:.1%}"
    text = (
        f"good {shown} (at least {good_ratio_min * 100:g}% wanted), {bad} of {planned} not good"
        f"{_verdict_text(claim, f'{good_ratio_min * 100:g}% good')}"
    )
    numbers = {"good_ratio": good_ratio, "good_ratio_limit": good_ratio_min, **_claim_numbers("good_ratio", claim)}
    return _Part("good_ratio_min", claim, text, numbers)


def _claim_numbers(key: str, claim: Claim) -> dict[str, Value]:
    numbers: dict[str, Value] = {
        f"{key}_n": claim.n,
        f"{key}_late": claim.late,
        f"{key}_late_ratio_allowed": claim.allowed,
        f"{key}_late_ratio_low": claim.lower,
        f"{key}_late_ratio_high": claim.upper,
    }
    if claim.status is Status.UNKNOWN:
        numbers[f"{key}_n_needed"] = claim.n_needed
    return numbers


def _verdict_text(claim: Claim, promise: str) -> str:
    """What the bounds allow to say, after a comma; with the number that would do where they allow nothing."""
    if claim.status is Status.PASS:
        return f" (surely {promise})"
    if claim.status is Status.FAIL:
        return f" (surely not {promise})"
    if claim.late == 0 or claim.n == 0:
        return f" (too few to be sure of {promise}: {n_to_pass(0, claim.allowed)} with none late would do)"
    if claim.n_needed is None:
        return f" (not sure of {promise}, and at this share of late ones no number would settle it)"
    return f" (not sure of {promise}: about {claim.n_needed} requests at this share of late ones would settle it)"


def _evidence(rows: Rows, bad: Mask, limits: Sequence[QuantileLimit]) -> tuple[Evidence, ...]:
    """Failed ones first, then the slowest to answer."""
    places = np.flatnonzero(bad)
    ok = rows.ok[places]
    slowest = np.where(ok, -values_of(rows, "ttft_ms")[places], 0.0)
    shown = places[np.lexsort((rows.numbers("request_id")[places], slowest, ok))][:EVIDENCE_ROWS]
    late_by = [(limit, late(rows, limit), values_of(rows, limit.metric)) for limit in loosest(limits)]
    return tuple(
        Evidence(
            row.ref,
            row.intended_ns,
            f"{row.outcome}{': ' + row.reason if row.reason else ''}"
            if not row.ok
            else ", ".join(
                f"{limit.metric} {values[place]:.0f} (limit {limit.limit_ms:.0f})"
                for limit, is_late, values in late_by
                if is_late[place]
            ),
            {"pod": row.pod, "node": row.node, "outcome": row.outcome},
        )
        for place, row in zip(shown.tolist(), rows.where(shown), strict=True)
    )


_ORDER = {Status.FAIL: 0, Status.UNKNOWN: 1, Status.PASS: 2}


def _worst(statuses: Sequence[Status]) -> Status:
    return min(statuses, key=lambda status: _ORDER[status], default=Status.UNKNOWN)
