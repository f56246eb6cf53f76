"""Memory and CPU of a million planned requests: planning them, and holding them in a load process.

``python benchmarks/many_requests.py [--requests 1000000]``

The profile is the shipped soak (sessions, shared prefixes, tenants, hang-ups) at a higher rate. Each part runs in a
process of its own; memory is that process' largest resident set.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

SOAK = Path(__file__).parent.parent / "loadprofiles" / "soak.yaml"
TURNS_PER_ARRIVAL = 1.8  # in the soak's mix; only to come near the number asked for
PLAN = """
import sys
from pathlib import Path
from harness.plan import plan_profile
from harness.spec.loadprofile import load_profile
plan_profile(load_profile(Path(sys.argv[1])), 1, 1.0).schedule.write(Path(sys.argv[2]))
"""
HOLD = """
import sys
from pathlib import Path
from harness.run.load.settings import read_arrivals
print(len(read_arrivals(Path(sys.argv[1]))))
"""


def measured(*argv: str) -> tuple[str, float, float]:
    """What it printed, its CPU seconds and its largest resident set in MB."""
    process = subprocess.Popen([sys.executable, "-c", *argv], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = process.stdout.read().strip()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0 and isinstance(used, resource.struct_rusage)
    return said, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    args = parser.parse_args()
    profile = yaml.safe_load(SOAK.read_text())
    profile["arrivals"]["rate_per_s"] = args.requests / profile["duration_s"] / TURNS_PER_ARRIVAL
    with tempfile.TemporaryDirectory() as folder:
        file, schedule = Path(folder) / "many.yaml", Path(folder) / "schedule.parquet"
        file.write_text(yaml.safe_dump(profile, sort_keys=False))
        _, plan_cpu_s, plan_mb = measured(PLAN, str(file), str(schedule))
        count, hold_cpu_s, hold_mb = measured(HOLD, str(schedule))
        print(f"{count} requests, {schedule.stat().st_size / 1e6:.0f} MB of schedule.parquet")
    print(f"planned and written    {plan_cpu_s:6.1f} CPU s {plan_mb:6.0f} MB")
    print(f"held by a load process {hold_cpu_s:6.1f} CPU s {hold_mb:6.0f} MB")


if __name__ == "__main__":
    main()
