"""What `plan` says of a profile that does not do all that its keys say: a bound decided, or an end came first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import BadInput
from harness.plan import Plan, TraceCut, plan_profile
from harness.plan.describe import describe
from harness.spec.loadprofile import load_profile

HEAD = "title: t\nduration_s: 300\nlongest_stream_s: 20\n"
POISSON = "arrivals: {kind: poisson, rate_per_s: 2}\n"
FIXED = "tokens: {prompt: {kind: fixed, tokens: 50}, output: {kind: fixed, tokens: 50}}\n"
ROWS = "tokens: {prompt: {kind: trace}, output: {kind: trace}}\n"
TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:{i // 60:02}:{i % 60:02}.0,{100 + i},{400 + i}\n" for i in range(556)
)


def plan(tmp_path: Path, text: str, time_scale: float = 1) -> Plan:
    (tmp_path / "load.yaml").write_text(HEAD + text)
    (tmp_path / "trace.csv").write_text(TRACE)
    return plan_profile(load_profile(tmp_path / "load.yaml"), 1, time_scale)


def trace(keys: str) -> str:
    return f"arrivals: {{kind: trace, file: trace.csv, {keys}}}\n{ROWS}"


def test_the_share_that_a_bound_cut(tmp_path: Path) -> None:
    cut = (
        "tokens:\n  prompt: {kind: fixed, tokens: 50}\n"
        "  output: {kind: log_normal, median_tokens: 30, sigma: 0.8, max_tokens: 31}\n"
    )
    planned = plan(tmp_path, POISSON + cut)
    share = float((planned.schedule.output_tokens == 31).mean())
    assert 0.4 < share < 0.6
    assert f"longest 31 tokens; {share:.0%} at max_tokens (31)" in describe(planned)
    told = json.loads(planned.to_json())["schedule"]["output_at_bound"]
    assert told["max_tokens"]["ratio"] == pytest.approx(share, abs=1e-6)
    assert "max_tokens" not in describe(plan(tmp_path, POISSON + cut.replace("max_tokens: 31", "max_tokens: 3000")))


def test_new_tokens_of_planned_turns_alone_count(tmp_path: Path) -> None:
    tokens = (
        "tokens:\n  prompt: {kind: normal, mean_tokens: 20, sd_tokens: 2, max_tokens: 20}\n"
        "  output: {kind: fixed, tokens: 5}\n"
    )
    mix = (
        "mix:\n  sessions: {turns_mean: 3, think_s: {kind: fixed, time_s: 30}}\n"
        "  prefixes: [{groups: 2, tokens: {kind: fixed, tokens: 7}}]\n"
    )
    planned = plan(tmp_path, POISSON + tokens + mix)
    (bound,) = planned.drawn.prompt
    assert bound.key == "max_tokens" and 0.5 < bound.ratio < 0.7
    assert planned.schedule.prompt_tokens.min() > 20


SESSIONS = (
    "mix: {sessions: {turns_min: 4, turns_mean: 5, think_s: {kind: log_normal, median_s: 15, sigma: 0.5}, CONTEXT}}\n"
)


def test_sessions_that_the_context_cuts_short(tmp_path: Path) -> None:
    """50 + 50 tokens a turn: a context of 90 has not even the first, one of 250 the first two."""
    for context, turns, says in (
        (90, 1, "first turns are longer"),
        (250, 2, "would be longer than"),
    ):
        planned = plan(tmp_path, POISSON + FIXED + SESSIONS.replace("CONTEXT", f"context_tokens_max: {context}"))
        text, drawn = describe(planned), planned.drawn.turns
        sessions = len(set(planned.schedule.session.tolist()))
        assert drawn is not None
        assert drawn.below_min_by_context + drawn.below_min_by_end == sessions
        assert says in text and f"of {turns}.0 turns" in text and "below turns_min (4)" in text
        assert drawn.first_turns_too_long == (sessions if context == 90 else 0)


def test_sessions_that_the_end_cuts_short(tmp_path: Path) -> None:
    planned = plan(tmp_path, POISSON + FIXED + SESSIONS.replace(", CONTEXT", ""), time_scale=2)
    drawn = planned.drawn.turns
    assert drawn is not None and drawn.cut_by_context == 0
    counts: dict[str, int] = {}
    for name in planned.schedule.session.tolist():
        counts[name] = counts.get(name, 0) + 1
    assert drawn.below_min_by_end == sum(count < 4 for count in counts.values()) > 0
    assert drawn.cut_by_end >= drawn.below_min_by_end
    text = describe(planned)
    assert f"{drawn.cut_by_end} sessions end early because the load ends; {drawn.below_min_by_end} of them" in text
    thinking_s = drawn.think_s_p50(2)
    assert thinking_s is not None and thinking_s == pytest.approx(15, rel=0.15)
    assert f"thinking takes {thinking_s:.3g} scenario s in the median" in text


def test_hang_ups_that_the_deadline_outruns(tmp_path: Path) -> None:
    mix = "mix: {hang_ups: [{share: 0.5, after_s: {kind: exponential, mean_s: 40}}]}\n"
    planned = plan(tmp_path, POISSON + FIXED + mix)
    late = planned.hang_ups_after_deadline
    assert planned.schedule.more is not None
    assert late == (planned.schedule.more.hang_up_ns >= 40_000_000_000).sum() > 0
    assert f", {late} of them not before send.deadline_s (40 s), which ends them" in describe(planned)
    assert json.loads(planned.to_json())["schedule"]["hang_ups_after_deadline"] == late


def test_the_most_wanted_beginning_and_priorities(tmp_path: Path) -> None:
    mix = (
        "mix:\n  prefixes: [{groups: 2, zipf: 1, tokens: {kind: fixed, tokens: 7}}]\n"
        "  tenants: [{name: big, share: 3, priority: 1}, {name: small, share: 1, priority: -1}]\n"
    )
    planned = plan(tmp_path, POISSON + FIXED + mix)
    assert planned.schedule.more is not None
    top = max(planned.schedule.more.prefix.tolist().count(f"p0.{n}:7") for n in (0, 1)) / len(planned.schedule)
    assert 0.6 < top < 0.73
    text = describe(planned)
    assert f"{top:.0%} of requests have the most wanted one" in text
    assert "(priority 1), small " in text and "(priority -1)" in text


@pytest.mark.parametrize(
    "keys, says, says_not",
    [
        ("start_s: 100, duration_s: 200, speed: 2", "to 300 at speed 2; rows end at 100 of 300 clock s", "loop"),
        ("start_s: 0, duration_s: 500", "0 to 300 (the load ends there; the cut goes to 500) at speed", "rows end"),
        ("duration_s: 500, loop: true", "(the load ends there; the cut goes to 500) at speed 1, 0.6 rounds", "end at"),
        ("start_s: 138, duration_s: 278, speed: 2, loop: true", "138 to 416 at speed 2, 2.2 rounds in a loop", "end"),
        ("duration_s: 300", "trace seconds 0 to 300 at speed 1", "rows end"),
    ],
)  # fmt: skip
def test_what_a_load_takes_of_a_trace(tmp_path: Path, keys: str, says: str, says_not: str) -> None:
    text = describe(plan(tmp_path, trace(keys)))
    assert says in text and says_not not in text


def test_a_loop_of_a_given_trace_says_the_same(tmp_path: Path) -> None:
    plan(tmp_path, POISSON + FIXED)
    cut = TraceCut(tmp_path / "trace.csv", 138, 278, 2, 1, loop=True)
    planned = plan_profile(load_profile(tmp_path / "load.yaml"), 1, 3, cut)
    assert "trace seconds 138 to 338 (the load ends there; the cut goes to 416)" in describe(planned)
    assert (planned.duration_s, planned.clock_s) == (300, 100)


@pytest.mark.parametrize(
    "keys, key",
    [
        ("start_s: 600", "start_s"),
        ("start_s: 600, duration_s: 10", "start_s"),
        ("start_s: 400, duration_s: 200", "duration_s"),
    ],
)
def test_a_cut_that_is_not_in_the_trace(tmp_path: Path, keys: str, key: str) -> None:
    parts = (
        "arrivals:\n  kind: sum\n  parts:\n    - {kind: poisson, rate_per_s: 1}\n"
        f"    - {{kind: trace, file: trace.csv, {keys}}}\n"
    )
    with pytest.raises(BadInput) as caught:
        plan(tmp_path, parts + FIXED)
    where = caught.value.where
    assert where is not None and (where.line, where.key) == (8, f"arrivals.parts.1.{key}")
    assert "the trace holds seconds 0 to 555.0" in (caught.value.hint or "")
