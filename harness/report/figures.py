"""The few figures that stand at the top of a report, and what the run's capacity would have cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from harness.checks.capacity import figures_of
from harness.checks.rows import nearest_rank, rows_of
from harness.checks.scale_up import took_ns
from harness.checks.slo import values_of
from harness.checks.units import count, scenario_s
from harness.history.replica_sets import Origin
from harness.history.scaleup import replicas_that_came
from harness.report.content import Section, Table, row_of, show
from harness.report.streams import Trouble

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.verdict import Verdict

Tile = tuple[str, str, str]
"""What it is, its value, and a word about it."""
_COST = {
    "gpu_s": "GPU seconds there (scenario time)",
    "gpu_s_idle": "of those, idle: no ready pod on the GPU",
    "gpu_s_idle_starting": "of those, held by a pod that was starting",
    "gpu_s_short": "GPU seconds asked for in vain",
    "gpu_idle_ratio": "idle share",
    "spot_ratio": "share of node time on spot",
    "cost": "cost of the nodes, in the unit of the prices",
    "cost_per_million_tokens": "cost per million output tokens of whole answers",
}


def tiles(history: History, verdict: Verdict, found: list[Trouble]) -> list[Tile]:
    rows = rows_of(history)
    asked = ~rows.hung_up_by_plan
    ok = int((asked & rows.ok).sum())
    ttft = values_of(rows, "ttft_ms")[asked & rows.streamed]
    tpot = rows.latency("tpot_ms")[rows.ok]
    tpot = tpot[~np.isnan(tpot)]
    came = [r for r in replicas_that_came(history) if r.origin is Origin.ADDED]
    times = [took for r in came if (took := took_ns(r)) is not None]
    slowest = f"{scenario_s(max(times), history.run.time_scale):.0f} s" if times else show(None)
    return [
        ("answered whole", f"{ok} of {asked.sum()}", "requests"),
        _lost(verdict, found),
        ("TTFT p95", _ms(nearest_rank(ttft, 0.95)), f"p50 {_ms(nearest_rank(ttft, 0.5))}, failed ones count as late"),
        ("TPOT p95", _ms(nearest_rank(tpot, 0.95)), f"p50 {_ms(nearest_rank(tpot, 0.5))}, whole answers"),
        ("slowest added replica", slowest, f"to its first token; {len(times)} of {len(came)} served"),
    ]


def _lost(verdict: Verdict, found: list[Trouble]) -> Tile:
    """What ``graceful_drain`` counts where it was asked for, else what was cut; and the tokens that ``requests``
    misses, for an answer may look whole to its client and still lack some."""
    judged = any(finding.check == "graceful_drain" for finding in verdict.findings)
    lost = [t for t in found if (t.cause is not None if judged else t.row.cut)]
    unexplained = sum(1 for t in lost if t.unexplained)
    words = f"{unexplained} unexplained" if unexplained else "each with its cause"
    if not lost:
        words = "no answer was cut or refused"
    elif not judged:
        words = "their causes were not asked for (graceful_drain)"
    tokens = [f.numbers for f in verdict.findings if f.check == "requests"]
    gone, again = (sum(int(n.get(key) or 0) for n in tokens) for key in ("tokens_lost", "tokens_repeated"))
    words += f"; but {count(gone, 'token')} lost on the way" if gone else ""
    words += f"; but {count(again, 'token')} came twice" if again else ""
    return "requests lost", str(len(lost)), words


def _ms(value: float | None) -> str:
    if value is None:
        return "not measured"
    return "never" if value == float("inf") else f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def cost(history: History) -> Section:
    """What the capacity that was there amounts to, whether or not the experiment asked for the check ``capacity``."""
    known = figures_of(history)
    prices = history.run.prices_per_hour
    lines = [row_of(words, known.get(name)) for name, words in _COST.items()]
    lines += [row_of(f"price of a {pool} node per hour", price) for pool, price in sorted(prices.items())]
    idle = known.get("gpu_idle_ratio")
    lead = f"{idle:.0%} of the GPU time was idle. " if isinstance(idle, float) else "No GPU was seen. "
    amount = known.get("cost")
    lead += f"The nodes cost {show(amount)}." if isinstance(amount, float) else "Cost is not known: no prices stated."
    return Section("Capacity and cost", lead, Table(("figure", "value"), tuple(lines)))
