"""Runs the shipped experiments over many seeds and says what came of each: the proof that verdicts are steady.

``python tests/whole_runs/repeat.py [--seeds 10] [--target TARGET] [--reports DIR] [EXPERIMENT…]`` prints a line per run
and a table at the end, and exits 1 when a run ended otherwise than it must, 77 when the target's programs are missing.
A run whose only trouble is a stall of the machine is repeated once with the same seed, and both are printed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from expectations import expected
from running import Ended, command

from harness.errors import TargetError
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.find import find_binaries

REPEATED = (
    "experiments/spot-interruption-during-burst.yaml",
    "experiments/negative/server-aborts-on-sigterm.yaml",
    "experiments/negative/fault-hits-nothing.yaml",
    "experiments/negative/load-not-offered.yaml",
    "experiments/negative/drain-ignores-pdb.yaml",
    "experiments/negative/gang-bound-one-by-one.yaml",
    "experiments/negative/autoscaler-does-not-answer.yaml",
)


@dataclass(frozen=True, slots=True)
class Row:
    experiment: str
    seed: int
    status: str
    took_s: float
    as_expected: bool
    accounted: bool
    repeated: bool
    trouble: str

    @property
    def stalled_only(self) -> bool:
        return self.trouble == "machine_did_not_stall"

    def __str__(self) -> str:
        words = [f"{Path(self.experiment).stem:32} seed {self.seed:<3} {self.status:8} {self.took_s:5.1f} s"]
        words += [] if self.as_expected else ["NOT AS EXPECTED"]
        words += [] if self.accounted else ["REQUESTS NOT ACCOUNTED"]
        words += [] if self.repeated else ["CHECK DOES NOT REPEAT"]
        return "  ".join([*words, self.trouble])


def run_once(experiment: str, seed: int, reports: Path, more: Sequence[str]) -> Row:
    started = time.monotonic()
    args = [experiment, "--plain", "--seed", str(seed), "--reports", str(reports), *more]
    ended = command("run", *args, reports=reports)
    took_s = time.monotonic() - started
    status, check = expected(experiment)
    verdict = ended.verdict
    said = {f["check"]: f["judged"] for f in verdict["findings"]}
    as_expected = verdict["status"] == status and (check is None or said[check] == status)
    trouble = [f["check"] for f in verdict["findings"] if f["status"] != "pass" and f["role"] == "validity"]
    trouble += [f["check"] for f in verdict["findings"] if f["status"] == "fail" and f["role"] == "check"]
    return Row(
        experiment, seed, verdict["status"], took_s, as_expected, accounted(ended), repeats(ended), ", ".join(trouble)
    )


def accounted(ended: Ended) -> bool:
    assert ended.folder is not None
    requests = pd.read_parquet(ended.folder / "history" / "requests.parquet")
    schedule = pd.read_parquet(ended.folder / "schedule.parquet")
    return len(schedule) == len(requests) == int(requests["outcome"].value_counts().sum())


def repeats(ended: Ended) -> bool:
    assert ended.folder is not None
    before = (ended.folder / "verdict.json").read_bytes()
    return (
        command("check", str(ended.folder)).code == ended.code
        and (ended.folder / "verdict.json").read_bytes() == before
    )


def what_is_missing(bin_dir: Path | None) -> str:
    try:
        find_binaries(CONTROL_PLANE, bin_dir)
    except TargetError as missing:
        return str(missing)
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="*", default=list(REPEATED), metavar="EXPERIMENT")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--reports", type=Path, default=Path("reports"))
    parser.add_argument("--target", default="embedded")
    parser.add_argument("--bin-dir", type=Path)
    args = parser.parse_args()
    more = ["--target", args.target, *(["--bin-dir", str(args.bin_dir)] if args.bin_dir else [])]
    if args.target == "controlplane" and (missing := what_is_missing(args.bin_dir)):
        print(f"cannot run: {missing}", file=sys.stderr)
        return 1 if os.environ.get("REQUIRE") == "1" else 77
    rows: list[Row] = []
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        for experiment in args.experiments:
            rows.append(run_once(experiment, seed, args.reports, more))
            print(rows[-1], flush=True)
            if not rows[-1].as_expected and rows[-1].stalled_only:
                rows.append(run_once(experiment, seed, args.reports, more))
                print(rows[-1], "(repeated)", flush=True)
    print()
    for experiment in args.experiments:
        mine = [row for row in rows if row.experiment == experiment]
        good, stalled = sum(row.as_expected for row in mine), sum(row.stalled_only for row in mine)
        longest = max(row.took_s for row in mine)
        print(f"{experiment}: {good} of {len(mine)} as expected, {stalled} stalled, longest {longest:.0f} s")
    bad = [row for row in rows if not (row.as_expected or row.stalled_only) or not row.accounted or not row.repeated]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
