"""Load profiles: what is good, and one clear answer for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import BadInput
from harness.spec.arrivals import BurstArrivals
from harness.spec.loadprofile import LoadProfile, load_profile
from harness.spec.tokens import QuantileTokens

GOOD = """\
title: Bursts
duration_s: 600
longest_stream_s: 60
peak_to_mean_min: 4
arrivals:
  kind: bursts
  rate_per_s: 2
  windows:
    - {start_s: 80, end_s: 140, added_per_s: 24}
tokens:
  prompt: {kind: fixed, tokens: 100}
  output:
    kind: quantiles
    max_tokens: 450
    points: [[0, 7], [0.5, 129], [1, 1000]]
send:
  deadline_s: 30
"""


def load(tmp_path: Path, text: str) -> LoadProfile:
    path = tmp_path / "load.yaml"
    path.write_text(text)
    return load_profile(path)


def test_good(tmp_path: Path) -> None:
    profile = load(tmp_path, GOOD)
    assert isinstance(profile.arrivals, BurstArrivals)
    assert isinstance(profile.tokens.output, QuantileTokens)
    assert (profile.duration_s, profile.longest_stream_s, profile.peak_to_mean_min) == (600, 60, 4)
    assert (profile.send.deadline_s, profile.send.stall_timeout_s) == (30, 5)


@pytest.mark.parametrize(
    "arrivals",
    [
        "{kind: constant, rate_per_s: 1}",
        "{kind: poisson, rate_per_s: 0.5}",
        "{kind: gamma, rate_per_s: 1, gap_cv: 13}",
        "{kind: on_off, on_per_s: 9, off_per_s: 0, on_mean_s: 10, off_mean_s: 100}",
        "{kind: pulses, on_per_s: 9, off_per_s: 1, period_s: 60, on_s: 20, start_s: 30}",
        "{kind: ramp, from_per_s: 0, to_per_s: 9, start_s: 100, end_s: 200}",
        "{kind: sum, parts: [{kind: constant, rate_per_s: 1}, {kind: poisson, rate_per_s: 1}]}",
    ],
)
def test_each_kind_of_arrivals(tmp_path: Path, arrivals: str) -> None:
    start, end = GOOD.index("arrivals:"), GOOD.index("tokens:\n")
    load(tmp_path, f"{GOOD[:start]}arrivals: {arrivals}\n{GOOD[end:]}")


@pytest.mark.parametrize(
    "old, new, line, key, says, hint",
    [
        ("duration_s: 600", "duration: 600", 2, "duration", "not known", "'duration_s'"),
        ("duration_s: 600", "duration_s: 10m", 2, "duration_s", "a number of seconds", "write duration_s: 600"),
        ("duration_s: 600", "duration_s: 0", 2, "duration_s", "more than 0", ""),
        ("longest_stream_s: 60\n", "", 1, "longest_stream_s", "is missing", "add it"),
        ("kind: bursts", "kind: burst", 6, "arrivals.kind", "not one of", "did you mean 'bursts'"),
        ("  kind: bursts\n", "", 5, "arrivals.kind", "'kind' is missing", "which kind"),
        ("rate_per_s: 2", "rate: 2", 7, "arrivals.rate", "not known", "'rate_per_s'"),
        ("rate_per_s: 2", "rate_per_s: 2/s", 7, "arrivals.rate_per_s", "requests per clock second", "rate_per_s: 2"),
        ("rate_per_s: 2", "rate_per_s: 1000000", 7, "arrivals.rate_per_s", "at most 10000", ""),
        ("end_s: 140", "end_s: 80", 9, "arrivals.windows.0.end_s", "ends at 80, but starts at 80", ""),
        ("end_s: 140", "end_s: 700", 9, "arrivals.windows.0.end_s", "but the profile lasts 600 s", "scenario seconds"),
        ("tokens: 100", "tokens: 0", 11, "tokens.prompt.tokens", "at least 1", ""),
        ("kind: fixed", "kind: uniform", 11, "tokens.prompt.kind", "not one of", "{kind: histogram, bins: "),
        ("kind: bursts", "kind: uniform", 6, "arrivals.kind", "not one of", "{kind: constant, "),
        ("kind: bursts", "kind: mmpp", 6, "arrivals.kind", "not one of", "{kind: on_off, "),
        ("[0, 7], ", "", 15, "tokens.output.points", "from quantile 0 to 1", ""),
        ("[0.5, 129]", "[0.5, 3]", 15, "tokens.output.points.1", "must not fall", ""),
        ("[0.5, 129]", "[0.5]", 15, "tokens.output.points.1", "not a pair of numbers", "[0.5, 129]"),
        ("[0, 7]", "[0, 0]", 15, "tokens.output.points.0", "at least 1 token", ""),
        ("deadline_s: 30", "deadline_ms: 30000", 17, "send.deadline_ms", "not known", "'deadline_s'"),
        ("deadline_s: 30", "deadline_s: 3", 16, "send.first_token_timeout_s", "could never strike", ""),
        ("peak_to_mean_min: 4", "peak_to_mean_min: 0.5", 4, "peak_to_mean_min", "at least 1", ""),
    ],
)
def test_one_clear_answer(tmp_path: Path, old: str, new: str, line: int, key: str, says: str, hint: str) -> None:
    assert old in GOOD
    with pytest.raises(BadInput) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    where = caught.value.where
    assert where is not None
    assert (where.line, where.key) == (line, key), caught.value
    assert says in caught.value.message
    assert hint in (caught.value.hint or "")


EVERY_KIND = """\
title: Everything
duration_s: 600
longest_stream_s: 60
arrivals:
  kind: sequence
  parts:
    - {duration_s: 100, arrivals: {kind: step, levels: [{start_s: 0, rate_per_s: 1}, {start_s: 50, rate_per_s: 2}]}}
    - {duration_s: 100, arrivals: {kind: diurnal, low_per_s: 1, high_per_s: 2, period_s: 100, peak_s: 50}}
    - duration_s: 100
      arrivals: {kind: flash_crowd, rate_per_s: 1, peak_per_s: 9, start_s: 5, rise_s: 5, half_life_s: 10}
    - {duration_s: 100, arrivals: {kind: renewal, rate_per_s: 1, gaps: [[0, 0], [1, 5]]}}
    - arrivals: {kind: sum, parts: [{kind: trace, file: t.csv}, {kind: poisson, rate_per_s: 1}]}
tokens:
  prompt: {kind: log_normal, median_tokens: 100, sigma: 1}
  output: {kind: histogram, bins: [[1, 9, 1], [10, 90, 0.5]]}
mix:
  prefixes: [{groups: 9, zipf: 1, tokens: {kind: normal, mean_tokens: 9, sd_tokens: 3, max_tokens: 20}}]
  sessions: {turns_mean: 3, think_s: {kind: exponential, mean_s: 9}}
  tenants: [{name: gold, share: 1}, {name: free, share: 3}]
  hang_ups: [{share: 0.1, after_tokens: {kind: fixed, tokens: 3}}, {share: 0.2, after_s: {kind: fixed, time_s: 1}}]
"""


@pytest.mark.parametrize(
    "old, new, line, key, says",
    [
        ("{start_s: 0, rate_per_s: 1}", "{start_s: 1, rate_per_s: 1}", 7, "levels.0.start_s", "must start at 0"),
        ("start_s: 50,", "start_s: 0,", 7, "levels.1.start_s", "follow one another"),
        ("start_s: 50,", "start_s: 500,", 7, "levels.1.start_s", "its part lasts 100 s"),
        ("[10, 90, 0.5]", "[10, 1000000000000000, 0.5]", 15, "bins.1", "at most 1000000"),
        ("high_per_s: 2", "high_per_s: 0.5", 8, "high_per_s", "below low_per_s"),
        ("peak_s: 50", "peak_s: 500", 8, "peak_s", "after the end of the period"),
        ("peak_per_s: 9", "peak_per_s: 1", 10, "peak_per_s", "not above rate_per_s"),
        ("start_s: 5,", "start_s: 99,", 10, "start_s", "ends at 104 s, but its part lasts 100 s"),
        ("[1, 5]]", "[0.9, 5]]", 11, "gaps", "from quantile 0 to 1"),
        ("[[0, 0], [1, 5]]", "[[0, 0], [1, 0]]", 11, "gaps", "all gaps are 0"),
        ("[0, 0], ", "[0], ", 11, "gaps.0", "not a pair of numbers"),
        ("- {duration_s: 100, arrivals: {kind: ren", "- {arrivals: {kind: ren", 11, "parts.3", "only the last part"),
        ("- {duration_s: 100, arrivals: {kind: ren", "- {duration_s: 300, arrivals: {kind: ren", 12, "parts.4",
         "the parts end at 600 s"),
        ("    - arrivals: {kind: sum", "    - duration_s: 10\n      arrivals: {kind: sum", 12, "parts.4.duration_s",
         "the parts end at 410 s, but the profile lasts 600 s"),
        ("median_tokens: 100", "median: 100", 14, "tokens.prompt.median", "not known"),
        ("{kind: log_normal, median_tokens: 100, sigma: 1}", "{kind: trace}", 14, "tokens.prompt", "not all arrivals"),
        ("[1, 9, 1]", "[9, 1, 1]", 15, "bins.0", "from at least 1 token up"),
        ("[1, 9, 1]", "[1, 9]", 15, "bins.0", "not three numbers"),
        ("max_tokens: 20", "min_tokens: 30, max_tokens: 20", 17, "tokens.max_tokens", "below min_tokens"),
        ("turns_mean: 3", "turns_mean: 99", 18, "sessions.turns_mean", "more than turns_max"),
        ("{kind: exponential, mean_s: 9}", "9", 18, "sessions.think_s", "a mapping"),
        ("name: free", "name: gold", 19, "tenants.1.name", "stands here twice"),
        ("share: 0.2", "share: 0.95", 20, "hang_ups", "add up to 1.05"),
        ("share: 0.2", "share: 2", 20, "hang_ups.1.share", "at most 1"),
        ("kind: log_normal, median_tokens: 100,", "kind: log_normal, max_tokens: 90, median_tokens: 100,", 14,
         "tokens.prompt.median_tokens", "above max_tokens (90)"),
        ("mean_tokens: 9,", "mean_tokens: 9, min_tokens: 10,", 17, "tokens.mean_tokens", "below min_tokens (10)"),
        ("mean_s: 9}", "mean_s: 9, max_s: 8}", 18, "think_s.max_s", "below mean_s (9)"),
        ("{kind: exponential, mean_s: 9}", "{kind: log_normal, median_s: 9, sigma: 1, max_s: 8}", 18, "think_s.max_s",
         "below median_s (9)"),
        ("time_s: 1}", "time_s: 40}", 20, "hang_ups.1.after_s.time_s", "not before send.deadline_s (40)"),
        (", after_s: {kind: fixed, time_s: 1}", "", 20, "hang_ups.1.share", "needs after_tokens or after_s"),
    ],
)  # fmt: skip
def test_one_clear_answer_of_each_kind(tmp_path: Path, old: str, new: str, line: int, key: str, says: str) -> None:
    load(tmp_path, EVERY_KIND)
    assert old in EVERY_KIND
    with pytest.raises(BadInput) as caught:
        load(tmp_path, EVERY_KIND.replace(old, new, 1))
    where = caught.value.where
    assert where is not None and where.key is not None
    assert where.line == line and where.key.endswith(key), caught.value
    assert says in caught.value.message


def test_all_mistakes_are_told_at_once_by_line(tmp_path: Path) -> None:
    text = GOOD.replace("duration_s: 600", "duration: 600").replace("rate_per_s: 2", "rate: 2").replace("30", "soon")
    with pytest.raises(BadInput) as caught:
        load(tmp_path, text.replace("tokens: 100", "tokens: 0"))
    told = [caught.value, *caught.value.also]
    places = [(error.where.line, error.where.key) for error in told if error.where]
    # Nothing is said of duration_s and rate_per_s, which are missing because they were misspelt.
    assert places == [(2, "duration"), (7, "arrivals.rate"), (11, "tokens.prompt.tokens"), (17, "send.deadline_s")]
    assert all(str(error) in str(caught.value) for error in told)


def test_of_very_many_mistakes_the_rest_is_counted(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        load(tmp_path, GOOD + "".join(f"key{n}: 1\n" for n in range(40)).replace("key39", "send: {}\nkey39"))
    assert str(caught.value).count("not known") <= 20


def test_a_share_over_one_may_have_been_meant_in_percent(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        load(tmp_path, EVERY_KIND.replace("share: 0.2", "share: 3"))
    assert "share: 0.03 for 3 %" in (caught.value.hint or "")


def test_a_pulse_must_end_before_the_next_begins(tmp_path: Path) -> None:
    start, end = GOOD.index("arrivals:"), GOOD.index("tokens:")
    pulses = "arrivals: {kind: pulses, on_per_s: 9, period_s: 60, on_s: 60}\n"
    with pytest.raises(BadInput, match="it would never be off"):
        load(tmp_path, f"{GOOD[:start]}{pulses}{GOOD[end:]}")
    late = pulses.replace("on_s: 60", "on_s: 6, start_s: 601")
    with pytest.raises(BadInput, match="but the profile lasts 600 s"):
        load(tmp_path, f"{GOOD[:start]}{late}{GOOD[end:]}")


@pytest.mark.parametrize(
    "deadline, line, key", [("send: {deadline_s: 30}\n", 8, "send.deadline_s"), ("", 2, "longest_stream_s")]
)
def test_a_client_less_patient_than_the_longest_stream(tmp_path: Path, deadline: str, line: int, key: str) -> None:
    profile = load(
        tmp_path,
        "title: t\nlongest_stream_s: 300\nduration_s: 600\narrivals: {kind: constant, rate_per_s: 1}\n"
        f"tokens:\n  prompt: {{kind: fixed, tokens: 9}}\n  output: {{kind: fixed, tokens: 9}}\n{deadline}",
    )
    profile.check_patience(10)
    with pytest.raises(BadInput, match="takes 60 clock seconds") as caught:
        profile.check_patience(5)
    where = caught.value.where
    assert where is not None and (where.line, where.key) == (line, key)
    assert f"at least {profile.time_scale_min:.3g}" in (caught.value.hint or "")


def test_an_experiment_is_no_load_profile(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is an experiment, not a load profile"):
        load(tmp_path, "title: t\ndescription: d\nmethod: []\nextensions: []\n")
