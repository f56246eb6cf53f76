"""Every shipped load profile can be planned, and is as close to its trace as it says."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.clock import NS_PER_S
from harness.plan import Schedule
from harness.plan.fit import distance, fit_quantiles
from harness.plan.make import schedule_of_profile
from harness.plan.mixed import mix_stats
from harness.plan.trace import read_rows
from harness.spec.arrivals import RenewalArrivals
from harness.spec.loadprofile import LoadProfile, load_profile
from harness.spec.tokens import QuantileTokens

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT.parent / "shared" / "data"
PROFILES = sorted((ROOT / "loadprofiles").glob("*.yaml"))
NAMES = {
    "busy-chat",
    "calm-chat",
    "chat",
    "chat-bursts",
    "code-completion",
    "flash-crowd",
    "long-answers",
    "long-document",
    "morning-ramp",
    "now-and-then",
    "quiet-chat",
    "small-machine",
    "small-machine-brief",
    "small-machine-calm",
    "small-machine-real-time",
    "soak",
    "steady-chat",
}


def profile(name: str) -> LoadProfile:
    return load_profile(ROOT / "loadprofiles" / f"{name}.yaml")


def data(name: str) -> Path:
    path = DATA / name
    if not path.is_file():
        pytest.skip(f"the trace that this profile was fitted to is not there: {path}")
    return path


def gaps_s(t_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.diff(t_ns) / NS_PER_S


def ks(one: Any, other: Any) -> float:
    """The largest difference of two distribution functions."""
    points = np.sort(np.concatenate([one, other]))
    shares = [np.searchsorted(np.sort(of), points, side="right") / len(of) for of in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


def test_what_is_shipped() -> None:
    assert {path.stem for path in PROFILES} == NAMES


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_each_can_be_planned_at_more_than_one_speed(path: Path) -> None:
    loaded = load_profile(path)
    assert loaded.spec.description
    assert loaded.tokens.fitted_from is not None or "Ours, made" in loaded.spec.description
    assert loaded.longest_stream_s <= loaded.send.deadline_s * 15
    for time_scale in (15.0, 60.0):
        schedule = schedule_of_profile(loaded, time_scale, 1)
        assert len(schedule) > 2, "of the profile in real time little is left at sixty times the speed"
        assert (schedule.prompt_tokens + schedule.output_tokens).max() < 131_072


class TestAzure:
    @pytest.mark.parametrize("name, trace", [("chat", "conv"), ("code-completion", "code")])
    @pytest.mark.parametrize("part", ["prompt", "output"])
    def test_lengths(self, name: str, trace: str, part: str) -> None:
        lengths = [getattr(row, f"{part}_tokens") for row in read_rows(data(f"azure-llm-2023-{trace}.csv"))]
        table = getattr(profile(name).tokens, part)
        assert isinstance(table, QuantileTokens)
        assert table.points == fit_quantiles(lengths, 0.01)
        assert distance(table.points, sorted(lengths))[0] <= 0.01

    def test_chat_gaps(self) -> None:
        recorded = gaps_s(np.array([row.t_ns for row in read_rows(data("azure-llm-2023-conv.csv"))]))
        planned = np.concatenate([gaps_s(schedule_of_profile(profile("chat"), 1, seed).t_ns) for seed in range(1, 6)])
        assert ks(planned, recorded) < 0.03
        assert 1 / planned.mean() == pytest.approx(1 / recorded.mean(), rel=0.05)
        assert planned.std() / planned.mean() == pytest.approx(recorded.std() / recorded.mean(), rel=0.05)
        for q in (0.5, 0.9, 0.99):
            assert np.quantile(planned, q) == pytest.approx(np.quantile(recorded, q), rel=0.06)

    def test_code_gaps(self) -> None:
        recorded = gaps_s(np.array([row.t_ns for row in read_rows(data("azure-llm-2023-code.csv"))]))
        code = profile("code-completion")
        planned = [gaps_s(schedule_of_profile(code, 1, seed).t_ns) for seed in range(1, 7)]
        cvs = [gaps.std() / gaps.mean() for gaps in planned]
        assert recorded.std() / recorded.mean() == pytest.approx(13.15, abs=0.01)
        assert min(cvs) > 10.5 and max(cvs) < 14.5
        together = np.concatenate(planned)
        assert ks(together, recorded) < 0.03
        for q in (0.5, 0.9, 0.99, 0.999):
            assert np.quantile(together, q) == pytest.approx(np.quantile(recorded, q), rel=0.15)

    def test_the_table_of_gaps_is_the_trace_s(self) -> None:
        recorded = np.sort(gaps_s(np.array([row.t_ns for row in read_rows(data("azure-llm-2023-code.csv"))])))
        arrivals = profile("code-completion").arrivals
        assert isinstance(arrivals, RenewalArrivals)
        for q, gap_ms in arrivals.gaps:
            rank = max(0, int(np.ceil(q * len(recorded))) - 1)
            assert gap_ms == pytest.approx(1000 * recorded[rank], rel=0.01)
        mean_ms = sum((q1 - q0) * (low + high) / 2 for (q0, low), (q1, high) in pairwise(arrivals.gaps))
        assert mean_ms == pytest.approx(1000 * recorded.mean(), rel=0.01)


@pytest.fixture(scope="module")
def recorded() -> list[dict[str, Any]]:
    with data("mooncake-conversation.jsonl").open() as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def planned() -> Schedule:
    return schedule_of_profile(profile("long-document"), 1, 1)


class TestMooncake:
    def test_prompts(self, recorded: list[dict[str, Any]], planned: Schedule) -> None:
        lengths = [row["input_length"] for row in recorded]
        assert ks(planned.prompt_tokens, lengths) < 0.115
        assert planned.prompt_tokens.mean() == pytest.approx(np.mean(lengths), rel=0.06)
        assert ks(planned.output_tokens, [row["output_length"] for row in recorded]) < 0.02

    def test_shared_beginnings(self, recorded: list[dict[str, Any]], planned: Schedule) -> None:
        seen: set[int] = set()
        hits = total = 0
        for row in recorded:
            for number, block in enumerate(row["hash_ids"]):
                tokens = min(512, row["input_length"] - 512 * number)
                hits, total = hits + tokens * (block in seen), total + tokens
            seen.update(row["hash_ids"])
        stats = mix_stats(planned)
        assert stats is not None
        assert hits / total == pytest.approx(0.374, abs=0.001)
        assert stats.shared_prompt_ratio == pytest.approx(hits / total, abs=0.03)

    def test_documents_that_come_again(self, recorded: list[dict[str, Any]], planned: Schedule) -> None:
        assert planned.more is not None
        named = [prefix.split("+")[1] for prefix in planned.more.prefix.tolist() if "+" in prefix]
        again = [sum(n for n in Counter(names).values() if n > 1) / count for names, count in (
            (named, len(planned)), ([row["hash_ids"][1] for row in recorded], len(recorded)),
        )]  # fmt: skip
        assert again[0] == pytest.approx(again[1], abs=0.05)


def test_the_flash_crowd_peaks_as_promised() -> None:
    crowd = profile("flash-crowd")
    for seed in range(1, 21):
        ratio = schedule_of_profile(crowd, 15, seed).stats(crowd.duration_s / 15)["peak_to_mean"]
        assert isinstance(ratio, float) and ratio >= 3
