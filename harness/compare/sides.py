"""Sides of a comparison: which runs stand together, and what changed between two of them beyond noise.

The unit is the run. With five valid runs or more on both sides each judged measure is put to an exact permutation test
of its ranks (the Wilcoxon-Mann-Whitney test with midranks, two-sided; up to 100,000 regroupings are all tried, of more
a seeded sample), and the p values are corrected by Holm's step-down method: the chance of any false claim is 5 %.
With fewer, differences are shown and nothing is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from harness.compare.measures import LABELS, MEASURES, Run, read_run
from harness.errors import BadInput, Where
from harness.spec.document import did_you_mean

RUNS_MIN = 5
ALPHA = 0.05
_REGROUPINGS = 100_000


@dataclass(frozen=True, slots=True)
class Side:
    """``left_out`` are runs that were not valid."""

    label: str
    runs: tuple[Run, ...]
    left_out: tuple[Run, ...] = ()

    def values(self, measure: str) -> list[float]:
        return [run.values[measure] for run in self.runs if measure in run.values]


@dataclass(frozen=True, slots=True)
class Change:
    """Of one measure from the first side to another. ``p`` is corrected; None where nothing is claimed."""

    measure: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    p: float | None = None

    @property
    def beyond_noise(self) -> bool:
        return self.p is not None and self.p <= ALPHA

    @property
    def worse(self) -> bool:
        """By the mean rank, which is what the test is about."""
        ranks = ranks_of([*self.before, *self.after])
        return bool(ranks[len(self.before) :].mean() > ranks[: len(self.before)].mean())


def gather(folders: Sequence[Path], by: str | None) -> list[Side]:
    """Each argument is a run, or a folder of runs at any depth. Without ``by``, a folder of runs is a side of its own,
    and runs that were named one by one stand together by their experiment's folder, or alone if there is only one."""
    if by is not None and by not in LABELS:
        raise BadInput(f"runs are not grouped by {by!r}", where=Where("--by"), hint=did_you_mean(by, list(LABELS)))
    # By side and place: a run that was named twice, or with a folder around it, is still one run of five.
    found_at: dict[tuple[str, Path], tuple[str, Run]] = {}
    for folder in folders:
        named = _is_run(folder)
        for path in [folder] if named else _runs_in(folder):
            run = read_run(path)
            label = LABELS[by](run) if by else LABELS["folder"](run) if named else folder.name
            found_at.setdefault((label, path.resolve()), (label, run))
    found = list(found_at.values())
    if by is None and len({label for label, _ in found}) == 1:
        found = [(LABELS["run"](run), run) for _, run in found]
    sides: dict[str, list[Run]] = {}
    for label, run in found:
        sides.setdefault(label, []).append(run)
    return [
        Side(label, tuple(r for r in runs if not r.invalid), tuple(r for r in runs if r.invalid))
        for label, runs in sides.items()
    ]


def _is_run(folder: Path) -> bool:
    return (folder / "history").is_dir()


def _runs_in(folder: Path) -> list[Path]:
    found = sorted(path.parent for path in folder.rglob("verdict.json") if _is_run(path.parent))
    if not found:
        raise BadInput(
            "there is no judged run here",
            where=Where(str(folder)),
            hint="give folders of runs, or folders that hold such; judge a run with 'gpu-harness check'",
        )
    return found


def changes(first: Side, other: Side) -> list[Change]:
    """Every measure that both sides have; p values where both have enough valid runs."""
    both = [(name, first.values(name), other.values(name)) for name in MEASURES]
    known = [(name, a, b) for name, a, b in both if a and b]
    judged = [
        (name, a, b) for name, a, b in known if MEASURES[name].judged and min(len(a), len(b)) >= RUNS_MIN
    ]  # fmt: skip
    corrected = holm({name: rank_p(a, b) for name, a, b in judged})
    return [Change(name, tuple(a), tuple(b), corrected.get(name)) for name, a, b in known]


def ranks_of(values: Sequence[float]) -> NDArray[np.float64]:
    """From 1; equal values share the middle of their ranks."""
    given = np.asarray(values, dtype=float)
    less = (given[None, :] < given[:, None]).sum(axis=1)
    equal = (given[None, :] == given[:, None]).sum(axis=1)
    return np.asarray(less + (equal + 1) / 2, dtype=np.float64)


def rank_p(before: Sequence[float], after: Sequence[float]) -> float:
    """Two-sided p of the difference of mean ranks. 1 where all values are equal."""
    # Imported here: it costs a second, and most runs are judged without a baseline.
    from scipy.stats import permutation_test  # type: ignore[import-untyped]  # scipy ships no types

    ranks = ranks_of([*before, *after])
    if np.ptp(ranks) == 0:
        return 1.0
    result = permutation_test(
        (ranks[: len(before)], ranks[len(before) :]),
        lambda a, b, axis: np.mean(a, axis=axis) - np.mean(b, axis=axis),
        vectorized=True,
        n_resamples=_REGROUPINGS,
        rng=np.random.default_rng(1),
    )
    return float(result.pvalue)


def holm(p_values: dict[str, float]) -> dict[str, float]:
    """Corrected p values, each at least as large as those before it."""
    corrected: dict[str, float] = {}
    reached = 0.0
    for rank, (name, p) in enumerate(sorted(p_values.items(), key=lambda pair: pair[1])):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p))
        corrected[name] = reached
    return corrected


def middle(values: Sequence[float]) -> float:
    return float(median(values))


def relative(change: Change) -> float | None:
    """Of the medians; None where there is nothing to divide by."""
    before, after = middle(change.before), middle(change.after)
    return None if before == 0 or not math.isfinite(before) or not math.isfinite(after) else after / before - 1
