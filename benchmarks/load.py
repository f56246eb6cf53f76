"""Tokens per CPU second of the load process, beside Locust's own client, httpx and aiohttp on the same load.

``python benchmarks/load.py [--rates 10 40] [--tokens 400] [--pace 50] [--seconds 12] [--rounds 2] [--only ours]``

All read the same streams (one event per token) from ``sse_source.py``, sent at the same moments at the same rates, in
turns, so that a busy moment of the machine hits all alike. CPU time is the client process' own, from its first send to
its end. The peers do what ``peers/reading.py`` says and no more. The bias is how late a first token was seen after the
server had sent it, on the monotonic clock that both read.

The last lines measure ours at half of 40,000 tokens a second, once with streams that tick at moments of their own and
once with all of them ticking together. Only requests sent while the full rate flowed count there.

``--undisturbed`` puts server and clients before all other programs (SCHED_RR; needs root) where others use the machine:
it keeps their turns out of the times, but not their traces out of the caches, which cost all clients CPU.
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
from typing import Any

import pandas as pd
from peers.arrivals import arrivals_s

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
    together: bool = False

    @property
    def requests(self) -> int:
        return round(self.rate_per_s * self.seconds)

    @property
    def tokens_per_s(self) -> float:
        """Once as many streams have begun as will ever be there at once."""
        return self.rate_per_s * self.tokens


@dataclass(frozen=True, slots=True)
class Measured:
    name: str
    tokens: int
    cpu_s: float
    bias_ns: pd.Series[int]
    """By request."""

    @property
    def per_cpu_s(self) -> float:
        return self.tokens / self.cpu_s


@contextmanager
def source(shape: Shape, sent: Path, spare_s: float = 120) -> Iterator[int]:
    """The port of a server, which leaves the times of its first tokens behind; ``spare_s`` is for clients to start."""
    ttl_s = shape.seconds + shape.tokens / shape.pace_per_s + spare_s
    argv = [sys.executable, str(HERE / "sse_source.py"), "--pace", str(shape.pace_per_s), "--ttl-s", str(ttl_s)]
    argv += ["--sent", str(sent)]
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
    seen_ns = {f"1-{i}": ns + start_ns for i, ns in zip(ends["request_id"], ends["first_token_ns"], strict=True)}
    return Measured("ours", int(ends["chunks"].sum()), cpu_s, bias_ns(seen_ns, folder / "sent")), ends


def bias_ns(seen_ns: dict[str, int], sent: Path) -> pd.Series[int]:
    sent_ns = dict(line.split() for line in sent.read_text().splitlines())
    return pd.Series([ns - int(sent_ns[name]) for name, ns in seen_ns.items()])


def tell(shape: Shape, folder: Path, port: int) -> int:
    """Writes the load's schedule and settings into the folder; history time 0, on the monotonic clock."""
    count = shape.requests
    moments_s = arrivals_s(shape.rate_per_s, shape.seconds, together=shape.together)
    table: dict[str, list[int] | list[str]] = {
        "t_ns": [round(t_s * NS_PER_S) for t_s in moments_s],
        "prompt_tokens": [100] * count,
    }
    table |= {"output_tokens": [shape.tokens] * count, "tenant": [""] * count, "session": [""] * count}
    pd.DataFrame(table).to_parquet(folder / "schedule.parquet", index=False)
    api = {"url": f"http://127.0.0.1:{port}", "model": "m"}
    send = {"connect_timeout_s": 5, "first_token_timeout_s": 20, "stall_timeout_s": 10, "deadline_s": 120}
    start_ns = monotonic_ns()
    told = {"schedule": str(folder / "schedule.parquet"), "api": api, "records": str(folder / "records.jsonl")}
    (folder / "load.json").write_text(json.dumps(told | {"start_ns": start_ns, "seed": 1, "send": send}))
    return start_ns


def peer(name: str, shape: Shape, folder: Path) -> Measured:
    folder.mkdir()
    with source(shape, folder / "sent") as port:
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
    said: dict[str, Any] = json.loads(found[0]) if found else {"tokens": 0}
    assert said["tokens"] == shape.requests * shape.tokens, f"{name} did not read all: {said['tokens']}"
    return Measured(name, said["tokens"], said["cpu_s"], bias_ns(said["first_ns"], folder / "sent"))


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
    parser.add_argument("--rates", type=float, nargs="+", default=[10, 40], help="requests per second")
    parser.add_argument("--seconds", type=float, default=12, help="for which requests are sent")
    parser.add_argument("--tokens", type=int, default=400, help="tokens of each answer")
    parser.add_argument("--pace", type=float, default=50, help="tokens per second of each stream")
    parser.add_argument("--rounds", type=int, default=2, help="how often each has its turn")
    parser.add_argument("--only", nargs="+", choices=["ours", "half", *PEERS], default=["ours", "half", *PEERS])
    parser.add_argument("--undisturbed", action="store_true", help="before all other programs (root)")
    args = parser.parse_args()
    if args.undisturbed:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(5))  # the children inherit it
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for rate in args.rates:
            shape = Shape(rate, args.seconds, args.tokens, args.pace)
            turns: dict[str, list[Measured]] = {client: [] for client in ("ours", *PEERS) if client in args.only}
            for number in range(args.rounds):
                for client, measured in turns.items():
                    own = folder / f"{rate:g}-{number}-{client}"
                    measured.append(ours(shape, own)[0] if client == "ours" else peer(client, shape, own))
            if turns:
                _tell(shape, turns)
        for together in (False, True) if "half" in args.only else ():
            half = Shape(HALF_TOKENS_PER_S / args.tokens, 2 * args.seconds, args.tokens, args.pace, together)
            _tell_of_half(half, *ours(half, folder / f"half-{together}"))


def _tell(shape: Shape, turns: dict[str, list[Measured]]) -> None:
    """All turns of a client together, and its best and worst."""
    print(f"at {shape.tokens_per_s:,.0f} tokens/s (load of the machine {os.getloadavg()[0]:.1f})")
    print(f"  {'client':26} {'CPU s':>6} {'tokens per CPU s':>16}   worst and best turn   TTFT bias ms p50, p99")
    whole = {}
    for name, each in turns.items():
        cpu_s = sum(turn.cpu_s for turn in each)
        whole[name] = sum(turn.tokens for turn in each) / cpu_s
        rates = sorted(turn.per_cpu_s for turn in each)
        late_ms = pd.concat([turn.bias_ns for turn in each]) / NS_PER_MS
        late = f"{late_ms.median():8.2f} {late_ms.quantile(0.99):8.2f}"
        print(
            f"  {name:26} {cpu_s:6.2f} {whole[name]:16,.0f}   {rates[0]:8,.0f} to {rates[-1]:,.0f}  {late}", flush=True
        )
    if "ours" in whole and len(whole) > 1:
        best = max((rate, name) for name, rate in whole.items() if name != "ours")
        print(f"  ours is {whole['ours'] / best[0]:.1f} times the best of them ({best[1]})", flush=True)


def _tell_of_half(shape: Shape, measured: Measured, ends: pd.DataFrame) -> None:
    full = ends["intended_ns"] - ends["intended_ns"].min() >= shape.tokens / shape.pace_per_s * NS_PER_S
    core = shape.tokens_per_s / measured.per_cpu_s
    how = "all streams ticking together" if shape.together else "each stream at its own moments"
    print(f"at half of 40,000, {how}: {core:.0%} of a core, {full.sum()} requests at the full rate")
    _say("send lag", (ends["sent_ns"] - ends["intended_ns"])[full])
    _say("TTFT bias", measured.bias_ns[full])


def _say(what: str, ns: pd.Series[int]) -> None:
    values = ns / NS_PER_MS
    print(f"  {what} ms p50 {values.median():.2f} p99 {values.quantile(0.99):.2f} max {values.max():.2f}", flush=True)


if __name__ == "__main__":
    main()
