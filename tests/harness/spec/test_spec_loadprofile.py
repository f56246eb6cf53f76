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
        ("kind: fixed", "kind: uniform", 11, "tokens.prompt.kind", "not one of", "known: fixed, histogram"),
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
