"""How fast a long history is read, judged and reported, on one core, and in how much memory.

``python benchmarks/judging.py [--requests 500000] [--events 500000] [--keep DIR]`` makes a history (see
``benchmarks/long_history.py``), then reads, judges and reports it in a process of its own. Seconds are CPU seconds of
that process (they do not depend on who else uses the machine), memory is the most that it ever held.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import long_history

JUDGED_S, REPORTED_S, HELD_GB, PAGE_MB = 30.0, 15.0, 2.0, 5.0
"""The goal, for half a million of each."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=500_000)
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--keep", type=Path, help="make the history here, or use the one that is here")
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        _measure(args.run)
        return
    with tempfile.TemporaryDirectory() as folder:
        run_dir = args.keep or Path(folder) / "run"
        if not (run_dir / "history").is_dir():
            long_history.write(run_dir, args.requests, args.events)
        subprocess.run([sys.executable, __file__, "--run", str(run_dir)], check=True)


def _measure(path: Path) -> None:
    from harness.history.reader import History
    from harness.run.judging import judge_run, report_run, write_verdict
    from harness.run.rundir import RunDir

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, whatever the libraries would like
    run_dir = RunDir(path)
    began = time.process_time()
    history = History.load(path)
    read_s = time.process_time() - began
    verdict = judge_run(run_dir, history)
    judged_s = time.process_time() - began
    write_verdict(run_dir, verdict)
    report_run(run_dir, history, verdict)
    reported_s = time.process_time() - began - judged_s
    held_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    page_mb, verdict_mb = (file.stat().st_size / 1e6 for file in (run_dir.report, run_dir.verdict))
    sizes = f"{len(history.requests)} requests, {len(history.objects)} watch events, {len(history.samples)} samples"
    print(f"history    {sizes}")
    print(f"verdict    {verdict.status.value}: {verdict.sentence[:160]}")
    print(f"judged     {judged_s:6.1f} CPU s (goal {JUDGED_S:g}), of which {read_s:.1f} to read the files")
    print(f"reported   {reported_s:6.1f} CPU s (goal {REPORTED_S:g})")
    print(f"held       {held_gb:6.2f} GB (goal {HELD_GB:g})")
    print(f"report     {page_mb:6.2f} MB (goal {PAGE_MB:g}), verdict.json {verdict_mb:.2f} MB")


if __name__ == "__main__":
    main()
