"""Ten minutes of the load process: whether its memory stays flat, and its sends as prompt at the end as at the start.

``python benchmarks/soak.py [--seconds 600] [--rate 10] [--tokens 200]``

The same process and server as in ``load.py``. One line a minute: the largest resident set in that minute, and how late
its sends were. Memory is flat when the second half needs no more than a twentieth more than the first, and lag does not
grow when the second half's median is at most a quarter above the first's; the first minute does not count, in which the
process fills its pools. Exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from load import LOCUSTFILE, Shape, source, tell

from harness.clock import NS_PER_MS, NS_PER_S, monotonic_ns
from harness.history.requests import read_records
from harness.run.load import settings as load_settings

MINUTE_S = 60
GROWTH_MAX = 1.05
LAG_GROWTH_MAX = 1.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rate", type=float, default=10, help="requests per second")
    parser.add_argument("--tokens", type=int, default=200, help="tokens of each answer")
    parser.add_argument("--pace", type=float, default=50, help="tokens per second of each stream")
    args = parser.parse_args()
    shape = Shape(args.rate, args.seconds, args.tokens, args.pace)
    with tempfile.TemporaryDirectory() as name, source(shape, Path(name) / "sent") as port:
        folder = Path(name)
        start_ns = tell(shape, folder, port)
        argv = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--only-summary"]
        env = os.environ | {load_settings.LOAD_ENV: str(folder / "load.json")}
        process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while read_records(folder / "records.jsonl").ready_ns is None:
            time.sleep(0.1)
        begins_ns = monotonic_ns() - start_ns + NS_PER_S
        (folder / "go.part").write_text(str(begins_ns))
        (folder / "go.part").rename(folder / "go")
        used: list[tuple[float, float]] = []
        while process.poll() is None:
            used.append(((monotonic_ns() - start_ns - begins_ns) / NS_PER_S, _resident_mb(process.pid)))
            time.sleep(2)
        ends = pd.DataFrame(list(read_records(folder / "records.jsonl").ends.values()))
    say(used, ends, begins_ns)


def say(used: list[tuple[float, float]], ends: pd.DataFrame, begins_ns: int) -> None:
    minute = ((ends["intended_ns"] - begins_ns) // (MINUTE_S * NS_PER_S)).astype(int)
    lag_ms = (ends["sent_ns"] - ends["intended_ns"]) / NS_PER_MS
    memory = pd.Series([mb for _, mb in used], index=[int(at_s // MINUTE_S) for at_s, _ in used])
    print(f"{len(ends)} requests, outcomes {json.dumps(ends['outcome'].value_counts().to_dict())}")
    print("minute   memory MB   lag ms p50   p99   max")
    for which, lags in lag_ms.groupby(minute):
        most = memory[memory.index == which].max()
        print(f"{which:6} {most:11.1f} {lags.median():12.2f} {lags.quantile(0.99):5.1f} {lags.max():5.1f}")
    half = minute.max() // 2
    early, late = (minute >= 1) & (minute <= half), minute > half
    if not early.any() or not late.any():
        sys.exit("too short to have two halves after its first minute")
    first, second = memory[(memory.index >= 1) & (memory.index <= half)].max(), memory[memory.index > half].max()
    flat = second <= first * GROWTH_MAX
    print(f"memory: {first:.1f} MB, then {second:.1f} MB: {'flat' if flat else 'it grows'}")
    before, after = lag_ms[early].median(), lag_ms[late].median()
    prompt = after <= before * LAG_GROWTH_MAX
    print(f"lag p50: {before:.2f} ms, then {after:.2f} ms: {'it does not grow' if prompt else 'it grows'}")
    whole = bool((ends["outcome"] == "ok").all())
    sys.exit(0 if flat and prompt and whole else 1)


def _resident_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


if __name__ == "__main__":
    main()
