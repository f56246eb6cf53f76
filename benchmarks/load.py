"""Tokens per CPU second of the load process, beside Locust's own client, httpx and aiohttp on the same load.

``python benchmarks/load.py [--rate 40] [--tokens 400] [--pace 50] [--seconds 20] [--rounds 2] [--only ours]``

All read the same streams (one event per token) from ``sse_source.py``, in turns, so that a busy moment of the machine
hits all alike. CPU time is the client process' own, from its first send to its end. The peers do what
``peers/reading.py`` says and no more. The last lines measure ours at half of 40,000 tokens a second: how late sends
were, how late the first token was seen after the server had sent it (both on the monotonic clock), and how busy it was.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from harness.clock import NS_PER_MS, NS_PER_S, monotonic_ns
from harness.history.requests import read_records
from harness.run.load import settings as load_settings

HERE = Path(__file__).parent
LOCUSTFILE = Path(load_settings.__file__).with_name("locustfile.py")
PEERS = ("FastHttpUser.iter_lines", "FastHttpUser, readline", "aiohttp", "httpx")
HALF_TOKENS_PER_S = 20_000


@dataclass(frozen=True, slots=True)
class Shape:
    rate_per_s: float
    seconds: float
    tokens: int
    pace_per_s: float

    @property
    def requests(self) -> int:
        return round(self.rate_per_s * self.seconds)


@dataclass(frozen=True, slots=True)
class Measured:
    name: str
    tokens: int
    cpu_s: float

    @property
    def per_cpu_s(self) -> float:
        return self.tokens / self.cpu_s


@contextmanager
def source(shape: Shape, sent: Path | None = None) -> Iterator[int]:
    ttl_s = shape.seconds + shape.tokens / shape.pace_per_s + 120
    argv = [sys.executable, str(HERE / "sse_source.py"), "--pace", str(shape.pace_per_s), "--ttl-s", str(ttl_s)]
    argv += ["--sent", str(sent)] if sent is not None else []
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()


def ours(shape: Shape, folder: Path) -> tuple[Measured, pd.DataFrame]:
    """The load process as the supervisor starts it, with everything that it does for a run."""
    count = shape.requests
    folder.mkdir()
    with source(shape, folder / "sent") as port:
        start_ns = tell(shape, folder, port)
        argv = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--only-summary"]
        env = os.environ | {load_settings.LOAD_ENV: str(folder / "load.json")}
        process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while read_records(folder / "records.jsonl").ready_ns is None:
            time.sleep(0.1)
        before_s = _cpu_s(process.pid)
        (folder / "go.part").write_text(str(monotonic_ns() - start_ns + NS_PER_S // 2))
        (folder / "go.part").rename(folder / "go")
        cpu_s = _wait(process) - before_s
    ends = pd.DataFrame(list(read_records(folder / "records.jsonl").ends.values()))
    assert len(ends) == count and (ends["outcome"] == "ok").all(), ends["outcome"].value_counts().to_dict()
    sent_ns = dict(line.split() for line in (folder / "sent").read_text().splitlines())
    ends["bias_ns"] = [
        first_ns - (int(sent_ns[f"1-{request_id}"]) - start_ns)
        for request_id, first_ns in zip(ends["request_id"], ends["first_token_ns"], strict=True)
    ]
    return Measured("ours", int(ends["chunks"].sum()), cpu_s), ends


def tell(shape: Shape, folder: Path, port: int) -> int:
    """Writes the load's schedule and settings into the folder; history time 0, on the monotonic clock."""
    count = shape.requests
    table = {"t_ns": (np.arange(count) * NS_PER_S / shape.rate_per_s).astype(np.int64), "prompt_tokens": [100] * count}
    table |= {"output_tokens": [shape.tokens] * count, "tenant": [""] * count, "session": [""] * count}
    pd.DataFrame(table).to_parquet(folder / "schedule.parquet", index=False)
    api = {"url": f"http://127.0.0.1:{port}", "model": "m"}
    send = {"connect_timeout_s": 5, "first_token_timeout_s": 20, "stall_timeout_s": 10, "deadline_s": 120}
    start_ns = monotonic_ns()
    told = {"schedule": str(folder / "schedule.parquet"), "api": api, "records": str(folder / "records.jsonl")}
    (folder / "load.json").write_text(json.dumps(told | {"start_ns": start_ns, "seed": 1, "send": send}))
    return start_ns


def peer(name: str, shape: Shape) -> Measured:
    with source(shape) as port:
        if name.startswith("FastHttpUser"):
            argv = [sys.executable, "-m", "locust", "-f", str(HERE / "peers" / "fast_http_user.py"), "--headless"]
            argv += ["--only-summary", "--host", f"http://127.0.0.1:{port}"]
        else:
            argv = [sys.executable, str(HERE / "peers" / "async_clients.py"), name, str(port)]
            argv += [str(shape.rate_per_s), str(shape.seconds), str(shape.tokens)]
        env = os.environ | {
            "BENCH_RATE": str(shape.rate_per_s), "BENCH_SECONDS": str(shape.seconds), "BENCH_TOKENS": str(shape.tokens),
            "BENCH_LINES": name.removeprefix("FastHttpUser").strip(" .,"),
        }  # fmt: skip
        told = subprocess.run(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found = re.search(r'\{"tokens": .*\}', told)
    said = json.loads(found[0]) if found else {"tokens": 0}
    assert said["tokens"] == shape.requests * shape.tokens, f"{name} did not read all: {said}"
    return Measured(name, said["tokens"], said["cpu_s"])


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _wait(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of a child, all its life."""
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    assert isinstance(used, resource.struct_rusage)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=40, help="requests per second")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--tokens", type=int, default=400, help="tokens of each answer")
    parser.add_argument("--pace", type=float, default=50, help="tokens per second of each stream")
    parser.add_argument("--rounds", type=int, default=2, help="how often each has its turn")
    parser.add_argument("--only", choices=["ours", *PEERS])
    args = parser.parse_args()
    shape = Shape(args.rate, args.seconds, args.tokens, args.pace)
    half = Shape(HALF_TOKENS_PER_S / args.tokens, args.seconds, args.tokens, args.pace)
    small = Shape(args.rate / 4, args.seconds, args.tokens, args.pace)
    with tempfile.TemporaryDirectory() as folder:
        measured: dict[str, list[Measured]] = {}
        for number in range(args.rounds):
            if args.only in (None, "ours"):
                measured.setdefault("ours", []).append(ours(shape, Path(folder) / f"full-{number}")[0])
            # The peers cannot keep up with the whole rate on a shared core; a token costs them the same at any rate.
            for name in PEERS:
                if args.only in (None, name):
                    measured.setdefault(name, []).append(peer(name, small))
        _tell(measured)
        if args.only in (None, "ours"):
            at_half, ends = ours(half, Path(folder) / "half")
            lasted_s = (ends["end_ns"].max() - ends["sent_ns"].min()) / NS_PER_S
            per_s, core = at_half.tokens / lasted_s, at_half.cpu_s / lasted_s
            machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
            print(f"at half of 40,000: {per_s:,.0f} tokens/s on average with {core:.0%} of a core ({machine})")
            _say("send lag", ends["sent_ns"] - ends["intended_ns"])
            _say("TTFT bias", ends["bias_ns"])


def _tell(measured: dict[str, list[Measured]]) -> None:
    """All turns of a client together, and its best and worst."""
    print("client                     tokens     CPU s  tokens per CPU s (worst and best turn)")
    whole = {}
    for name, turns in measured.items():
        tokens, cpu_s = sum(turn.tokens for turn in turns), sum(turn.cpu_s for turn in turns)
        whole[name] = tokens / cpu_s
        each = sorted(turn.per_cpu_s for turn in turns)
        print(f"{name:24} {tokens:8} {cpu_s:9.2f} {whole[name]:8,.0f} ({each[0]:,.0f} to {each[-1]:,.0f})")
    if "ours" in whole and len(whole) > 1:
        best = max((rate, name) for name, rate in whole.items() if name != "ours")
        print(f"ours is {whole['ours'] / best[0]:.1f} times the best of them ({best[1]})")


def _say(what: str, ns: pd.Series[int]) -> None:
    values = ns / NS_PER_MS
    print(f"  {what} ms p50 {values.median():.2f} p99 {values.quantile(0.99):.2f} max {values.max():.2f}")


if __name__ == "__main__":
    main()
