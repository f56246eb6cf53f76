"""The headline experiments for real, each to its declared verdict: ``make gate``. Exit code 1 if one does not."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "tests/harness/run/virtual/expected.yaml").read_text())
HEADLINES = (
    "spot-interruption-during-burst", "node-not-ready-during-burst", "consolidation-during-burst",
    "interruption-during-rollout", "loss-in-the-middle-of-a-drain", "pods-deleted-during-burst",
    "half-a-group-delivered-to-a-gang", "quota-reached-during-burst", "gpus-late-on-a-ready-node",
    "metrics-blank-during-burst", "scheduler-stopped-during-burst", "gateway-restart-during-burst",
)  # fmt: skip
CODES = {"pass": 0, "fail": 1}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=Path, default=ROOT / "reports" / "gate")
    parser.add_argument("names", nargs="*", default=HEADLINES)
    args = parser.parse_args()
    wrong = 0
    for name in args.names:
        began_s = time.monotonic()
        command = [sys.executable, "-m", "harness.cli", "run", f"experiments/{name}.yaml", "--plain"]
        again = ""
        for _ in range(2):  # once more where the machine stalled, and only there: nothing can be said of such a run
            ended = subprocess.run(
                [*command, "--reports", str(args.reports)], cwd=ROOT, capture_output=True, text=True, check=False
            )
            if "machine_did_not_stall could not be judged" not in ended.stdout:
                break
            again = (
                " at the second try, for the machine had stalled" if not again else ", for the machine stalled twice"
            )
        right = ended.returncode == CODES[EXPECTED[name]["verdict"]]
        wrong += not right
        said = (
            f"as declared{again}"
            if right
            else f"WRONG{again}, {EXPECTED[name]['verdict']} was declared\n{ended.stdout[-2000:]}"
        )
        print(f"{name}: exit {ended.returncode}, {said} ({time.monotonic() - began_s:.0f} s)", flush=True)
    print(f"{len(args.names)} experiments, {wrong} not as declared")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
