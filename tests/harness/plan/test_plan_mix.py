"""Shared beginnings, further turns, tenants, hang-ups: planned as written, each by a chance of its own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from harness.clock import NS_PER_S
from harness.plan import Schedule
from harness.plan.make import schedule_of_profile
from harness.plan.mixed import mix_stats
from harness.plan.prefixes import split
from harness.plan.schedule import More
from harness.spec.loadprofile import load_profile

PROFILE = """\
title: Mixed
duration_s: 600
longest_stream_s: 60
arrivals: {kind: poisson, rate_per_s: 5}
tokens:
  prompt: {kind: fixed, tokens: 100}
  output: {kind: fixed, tokens: 50}
"""
SESSIONS = "sessions: {turns_mean: 4, turns_max: 9, think_s: {kind: fixed, time_s: 30}, context_tokens_max: 100000}"
PREFIXES = """prefixes:
    - {groups: 1, tokens: {kind: fixed, tokens: 512}}
    - {groups: 50, zipf: 1, share: 0.5, tokens: {kind: histogram, bins: [[100, 300, 1]]}}"""
TENANTS = "tenants: [{name: gold, share: 1, priority: -5}, {name: free, share: 3}]"
STREAMS = "stream_share: 0.8"
HANG_UPS = """hang_ups:
    - {share: 0.1, after_tokens: {kind: fixed, tokens: 7}}
    - {share: 0.2, after_s: {kind: fixed, time_s: 1.5}}"""
EVERYTHING = (SESSIONS, PREFIXES, TENANTS, STREAMS, HANG_UPS)


def plan(tmp_path: Path, *mix: str, seed: int = 1, time_scale: float = 1, profile: str = PROFILE) -> Schedule:
    lines = "".join(f"  {part}\n" for part in mix)
    path = tmp_path / "load.yaml"
    path.write_text(profile + (f"mix:\n{lines}" if mix else ""))
    return schedule_of_profile(load_profile(path), time_scale, seed)


def more_of(schedule: Schedule) -> More:
    assert schedule.more is not None
    return schedule.more


def test_nothing_said_is_nothing_planned(tmp_path: Path) -> None:
    schedule = plan(tmp_path)
    assert schedule.more is None
    assert mix_stats(schedule) is None
    assert set(schedule.tenant.tolist()) == {"default"}


def test_one_more_question_changes_no_other_answer(tmp_path: Path) -> None:
    bare = plan(tmp_path)
    for part in (PREFIXES, TENANTS, STREAMS, HANG_UPS):
        assert (plan(tmp_path, part).t_ns == bare.t_ns).all()
    both, alone = plan(tmp_path, TENANTS, STREAMS), plan(tmp_path, TENANTS)
    assert (both.tenant == alone.tenant).all()


def test_everything_at_once_goes_to_disk_and_back(tmp_path: Path) -> None:
    schedule = plan(tmp_path, *EVERYTHING, time_scale=10)
    schedule.write(tmp_path / "s.parquet")
    read = Schedule.read(tmp_path / "s.parquet")
    assert read.sha256() == schedule.sha256() == plan(tmp_path, *EVERYTHING, time_scale=10).sha256()
    assert read.sha256() != plan(tmp_path, *EVERYTHING, time_scale=10, seed=2).sha256()
    table = pd.read_parquet(tmp_path / "s.parquet")
    assert {"turn", "priority", "stream", "hang_up_tokens", "hang_up_ns", "prefix"} < set(table.columns)


@pytest.mark.parametrize("name", ["turn", "priority", "stream", "hang_up_tokens", "hang_up_ns", "prefix"])
def test_every_column_is_in_the_checksum(tmp_path: Path, name: str) -> None:
    base = More.usual(3)
    columns: dict[str, Any] = {n: getattr(base, n).copy() for n in More.__slots__}
    columns[name] = np.array(["", "p:1", ""]) if name == "prefix" else columns[name] + np.array([0, 1, 0])
    schedule = plan(tmp_path)
    three = [getattr(schedule, n)[:3] for n in ("t_ns", "prompt_tokens", "output_tokens", "tenant", "session")]
    sums = {Schedule(*three, more=more).sha256() for more in (None, base, More(**columns))}
    assert len(sums) == 3
    assert base.or_none() is None and More(**columns).or_none() is not None


class TestSessions:
    def test_turns_follow_at_planned_times(self, tmp_path: Path) -> None:
        schedule = plan(tmp_path, SESSIONS, time_scale=10)
        more = more_of(schedule)
        rows: dict[str, list[int]] = {}
        for index, session in enumerate(schedule.session.tolist()):
            rows.setdefault(session, []).append(index)
        assert (np.diff(schedule.t_ns) >= 0).all()
        # 0.5 s to the first token, 50 tokens of 20 ms, and 30 scenario seconds of thinking at 10 a clock second.
        gap_ns = round((0.5 + 50 * 0.02 + 3) * NS_PER_S)
        for indices in rows.values():
            assert more.turn[indices].tolist() == list(range(1, len(indices) + 1))
            assert set(np.diff(schedule.t_ns[indices]).tolist()) <= {gap_ns}
            assert schedule.prompt_tokens[indices].tolist() == [100 + 150 * n for n in range(len(indices))]
        assert schedule.t_ns[-1] < 60 * NS_PER_S

    def test_how_many_turns(self, tmp_path: Path) -> None:
        long = PROFILE.replace("duration_s: 600", "duration_s: 3000")
        schedule = plan(tmp_path, SESSIONS.replace("time_s: 30", "time_s: 0"), profile=long)
        early = [s for s, t in zip(schedule.session.tolist(), schedule.t_ns.tolist(), strict=True) if t < 2900e9]
        turns = np.array(list(Counter(early).values()))
        # Geometric with mean 4, cut at 9: (1 - 0.75^9) / 0.25.
        assert turns.mean() == pytest.approx((1 - 0.75**9) / 0.25, rel=0.03)
        assert turns.max() == 9

    def test_the_least_number_of_turns_and_always_the_same(self, tmp_path: Path) -> None:
        long = PROFILE.replace("duration_s: 600", "duration_s: 3000")
        for keys, least, mean in (
            ("turns_mean: 5, turns_min: 4, turns_max: 60", 4, 5.0),
            ("turns_mean: 5, turns_min: 5, turns_max: 5", 5, 5.0),
        ):
            of = SESSIONS.replace("turns_mean: 4, turns_max: 9", keys).replace("time_s: 30", "time_s: 0")
            schedule = plan(tmp_path, of, profile=long)
            rows = list(zip(schedule.session.tolist(), schedule.t_ns.tolist(), strict=True))
            early = {s for s, t_ns in rows if t_ns < 2700e9}  # those that the load's end did not cut short
            turns = np.array(list(Counter(s for s, _ in rows if s in early).values()))
            assert turns.min() == least
            assert turns.mean() == pytest.approx(mean, rel=0.03)
            stats = mix_stats(schedule)
            assert stats is not None and stats.turns_mean == pytest.approx(mean, rel=0.05)

    def test_a_session_ends_where_its_context_is_full(self, tmp_path: Path) -> None:
        small = SESSIONS.replace("100000", "700")
        schedule = plan(
            tmp_path, small, PREFIXES.replace("tokens: 512", "tokens: 50").replace("share: 0.5", "share: 0")
        )
        assert (schedule.prompt_tokens + schedule.output_tokens).max() == 50 + 100 + 150 * 3 + 50

    def test_only_a_share_of_arrivals_opens_one(self, tmp_path: Path) -> None:
        schedule = plan(tmp_path, SESSIONS.replace("turns_mean", "share: 0.3, turns_mean"))
        single = int((schedule.session == "").sum())
        sessions = len({s for s in schedule.session.tolist() if s})
        assert sessions / (single + sessions) == pytest.approx(0.3, abs=0.04)
        assert (more_of(schedule).turn[schedule.session == ""] == 0).all()

    def test_the_prompt_of_a_turn_begins_with_that_of_the_turn_before(self, tmp_path: Path) -> None:
        schedule = plan(tmp_path, SESSIONS, PREFIXES, time_scale=10)
        last: dict[str, list[tuple[str, int]]] = {}
        for prefix, session in zip(more_of(schedule).prefix.tolist(), schedule.session.tolist(), strict=True):
            segments = split(prefix)
            if before := last.get(session):
                assert segments[:-1] == before[:-1]
                assert segments[-1][0] == before[-1][0] and segments[-1][1] > before[-1][1]
            last[session] = segments


class TestPrefixes:
    def test_they_are_added_to_the_prompt(self, tmp_path: Path) -> None:
        schedule = plan(tmp_path, PREFIXES)
        prefixes = [split(prefix) for prefix in more_of(schedule).prefix.tolist()]
        for segments, prompt in zip(prefixes, schedule.prompt_tokens.tolist(), strict=True):
            assert prompt == 100 + sum(tokens for _, tokens in segments)
        assert {segments[0] for segments in prefixes} == {("p0.0", 512)}
        lengths: dict[str, set[int]] = {}
        for segments in prefixes:
            for name, tokens in segments[1:]:
                lengths.setdefault(name, set()).add(tokens)
        assert all(len(of_one) == 1 and 100 <= min(of_one) <= 300 for of_one in lengths.values())

    def test_groups_have_a_zipf_share(self, tmp_path: Path) -> None:
        long = PROFILE.replace("rate_per_s: 5", "rate_per_s: 50")
        schedule = plan(tmp_path, PREFIXES, profile=long)
        names = [s[1][0] for p in more_of(schedule).prefix.tolist() if len(s := split(p)) > 1]
        assert len(names) / len(schedule) == pytest.approx(0.5, abs=0.02)
        counts, harmonic = Counter(names), sum(1 / k for k in range(1, 51))
        for rank in (1, 2, 10):
            assert counts[f"p1.{rank - 1}"] / len(names) == pytest.approx(1 / rank / harmonic, rel=0.12)


def test_tenants_have_their_shares_and_priorities(tmp_path: Path) -> None:
    schedule = plan(tmp_path, TENANTS, SESSIONS)
    more = more_of(schedule)
    starts = more.turn <= 1
    assert np.mean(schedule.tenant[starts] == "gold") == pytest.approx(0.25, abs=0.03)
    assert set(more.priority[schedule.tenant == "gold"].tolist()) == {-5}
    assert set(more.priority[schedule.tenant == "free"].tolist()) == {0}
    by_session = dict(zip(schedule.session.tolist(), schedule.tenant.tolist(), strict=True))
    assert [by_session[s] for s in schedule.session.tolist()] == schedule.tenant.tolist()


def test_streams_and_hang_ups_have_their_shares(tmp_path: Path) -> None:
    more = more_of(plan(tmp_path, STREAMS, HANG_UPS))
    assert more.stream.mean() == pytest.approx(0.8, abs=0.025)
    assert set(more.hang_up_tokens.tolist()) == {0, 7}
    assert set(more.hang_up_ns.tolist()) == {0, 1_500_000_000}
    assert np.mean(more.hang_up_ns > 0) == pytest.approx(0.2, abs=0.025)
    assert np.mean(more.hang_up_tokens[more.stream == 1] > 0) == pytest.approx(0.1, abs=0.02)
    assert (more.hang_up_tokens[more.stream == 0] == 0).all()
    assert not ((more.hang_up_tokens > 0) & (more.hang_up_ns > 0)).any()


def test_what_the_plan_says_of_it(tmp_path: Path) -> None:
    schedule = plan(tmp_path, *EVERYTHING, time_scale=10)
    stats, more = mix_stats(schedule), more_of(schedule)
    assert stats is not None
    assert sum(stats.tenants.values()) == len(schedule) == stats.with_prefix
    assert stats.turns_max == more.turn.max()
    assert stats.not_streamed == int((more.stream == 0).sum())
    # All but the first request have the common 512 tokens, and further turns all of the turn before.
    assert 512 / schedule.prompt_tokens.mean() < stats.shared_prompt_ratio < 1
