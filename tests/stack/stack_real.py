"""``make test-stack-experiments``: those whose system under test is a real component, each to its declared verdict.

``stack_real.py [--all] [--lanes N] [--reports DIR] [NAME…]`` prints a line for each and what it came to in the last
one. Where the embedded cluster emulates the component, both histories are compared, too. Exits 1 when one ended
otherwise than declared, 77 (with REQUIRE=1: 1) when nothing could be run. Without ``--all`` it is a choice that ends
within ten minutes. Each experiment has a control plane of its own and waits most of the time, so there are as many at
once as there are cores; one of which nothing can be said because the machine stood still is played once more, alone.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "harness" / "run" / "virtual"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "behaviour"))

from declared import ROOT, Expected, declared
from histories import compared, wanted_lives
from virtual_runs import run_virtually

from harness.errors import HarnessError
from harness.history.reader import History
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.description import in_order
from harness.stack.find import find_binaries
from harness.stack.find_addons import find_addons

CHOICE = (
    "gang-preempted-by-halves", "gangs-compete-bound-one-by-one", "gang-in-one-zone", "dra-taint-takes-one-pod",
    "dra-taint-without-eviction", "dra-numa-half-lost", "karpenter-killed-while-nodes-register",
)  # fmt: skip
BUDGET_S = 510
"""No experiment is begun after so many seconds, for the choice to end within ten minutes on a slow machine."""
STALLED = ("machine_did_not_stall", "load_offered", "clocks_agree")


@dataclass(frozen=True, slots=True)
class Ended:
    right: bool
    text: str
    unknown: bool = False
    """The machine stood still, or the harness did."""
    folder: Path | None = None
    """Of a run that ended as declared."""


def missing(expected: Expected) -> str:
    """Why it cannot be run here; empty where it can."""
    try:
        find_binaries(CONTROL_PLANE)
        find_addons(in_order(expected.components))
    except HarnessError as error:
        return str(error).splitlines()[0]
    return ""


class Plays:
    """Runs as processes, in lanes. Whatever ends this one ends them, and waits for them to take their clusters down."""

    def __init__(self, reports: Path, begin_within_s: float) -> None:
        self._reports = reports
        self._last_begin_s = time.monotonic() + begin_within_s
        self._running: set[subprocess.Popen[str]] = set()
        self._mutex = threading.Lock()
        self._ended = False

    def each(self, chosen: Sequence[Expected], lanes: int) -> Iterator[tuple[Expected, Ended | None, float]]:
        """As they end, with the seconds each took; None for one that there was no time to begin."""
        pool = ThreadPoolExecutor(lanes)
        played: dict[Future[tuple[Ended | None, float]], Expected] = {pool.submit(self._play, e): e for e in chosen}
        try:
            for done in as_completed(played):
                yield played[done], *done.result()
        finally:
            with self._mutex:
                self._ended = True
                for process in self._running:
                    process.terminate()
            pool.shutdown(cancel_futures=True)
            self._ended = False

    def _play(self, expected: Expected) -> tuple[Ended | None, float]:
        began_s = time.monotonic()
        if began_s > self._last_begin_s:
            return None, 0.0
        command = [sys.executable, "-m", "harness.cli", "run", str(expected.file), "--target", "controlplane"]
        command += ["--plain", "--seed", "1", "--reports", str(self._reports)]
        with self._mutex:
            if self._ended:
                return None, 0.0
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            self._running.add(process)
        said = process.communicate()[0]
        with self._mutex:
            self._running.discard(process)
        return self._judged(expected, process.returncode, said), time.monotonic() - began_s

    def _judged(self, expected: Expected, code: int, words: str) -> Ended:
        folders = sorted((self._reports / expected.name).glob("2*"))
        file = folders[-1] / "verdict.json" if folders else None
        if file is None or not file.is_file():
            return Ended(False, f"no verdict, exit {code}\n{words[-1500:]}")
        verdict = json.loads(file.read_text())
        said = {finding["check"]: finding for finding in verdict["findings"]}
        own = said[expected.check]
        text = f"{verdict['status']}: {own['sentence']}"
        if verdict["status"] == own["judged"] == expected.verdict and expected.words in own["sentence"]:
            return Ended(True, text, folder=folders[-1])
        why = [f"{name} {f['judged']}" for name, f in said.items() if f["judged"] != "pass" and name != expected.check]
        text += f" ({expected.verdict} with {expected.words!r} was declared; {', '.join(why) or 'all else passed'})"
        unheard = [name for name in STALLED if said[name]["judged"] != "pass"]
        return Ended(False, text, verdict["status"] == "unknown" and bool(unheard))


def beside_embedded(expected: Expected, ended: Ended) -> Ended:
    """With what the real component did otherwise than the embedded cluster, where both are compared."""
    if ended.folder is None or expected.agreement is None:
        return ended
    with tempfile.TemporaryDirectory() as folder:
        ours = wanted_lives(expected.agreement, run_virtually(expected.file, Path(folder)).history)
    real = wanted_lives(expected.agreement, History.load(ended.folder))
    differences = compared(expected.agreement, ours, real).differences
    text = ended.text + "".join(f"\n    differs from the embedded one: {d}" for d in differences)
    return replace(ended, right=not differences, text=text)


def play_all(chosen: Sequence[Expected], plays: Plays, lanes: int) -> dict[str, bool]:
    """Whether each came out as declared; those that there was no time for are left out. Prints each as it ends."""
    right: dict[str, bool] = {}

    def tell(expected: Expected, ended: Ended, took_s: float) -> None:
        ended = beside_embedded(expected, ended)
        right[expected.name] = ended.right
        state = "as declared" if ended.right else "NOT AS DECLARED"
        print(f"{expected.name} ({expected.system}): {state}, {ended.text} ({took_s:.0f} s)", flush=True)

    unheard: dict[str, tuple[Ended, float]] = {}
    for expected, ended, took_s in plays.each(chosen, lanes):
        if ended is None:
            print(f"{expected.name}: not run: its time was up", flush=True)
        elif ended.unknown:
            unheard[expected.name] = ended, took_s
        else:
            tell(expected, ended, took_s)
    for expected, ended, took_s in plays.each([e for e in chosen if e.name in unheard], lanes=1):
        tell(expected, *((ended, took_s) if ended is not None else unheard[expected.name]))
    return right


def _end(number: int, frame: object) -> None:
    raise SystemExit(f"ended by {signal.Signals(number).name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of tests/stack/expected.yaml")
    parser.add_argument("--all", action="store_true", help="all of them, however long it takes")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument(
        "--lanes", type=int, default=cores, help="experiments at a time, each with its own control plane"
    )
    parser.add_argument("--reports", type=Path, default=ROOT / "reports" / "stack")
    args = parser.parse_args()
    known = {e.name: e for e in declared() if "controlplane" in e.on}
    if unknown := set(args.names) - known.keys():
        print(f"unknown: {', '.join(sorted(unknown))}; there is: {', '.join(known)}", file=sys.stderr)
        return 64
    chosen = [known[name] for name in args.names or (known if args.all else CHOICE)]
    can = []
    for expected in chosen:
        if why := missing(expected):
            print(f"{expected.name}: not run: {why}", flush=True)
        else:
            can.append(expected)
    signal.signal(signal.SIGTERM, _end)
    plays = Plays(args.reports, float("inf") if args.all or args.names else BUDGET_S)
    began_s = time.monotonic()
    ended = play_all(can, plays, max(1, args.lanes))
    right = sum(ended.values())
    print(
        f"{right} of {len(chosen)} experiments on real components as declared, {len(ended) - right} not, "
        f"{len(chosen) - len(ended)} not run; {time.monotonic() - began_s:.0f} s"
    )
    if not ended:
        return 1 if os.environ.get("REQUIRE") == "1" else 77
    return int(right < len(ended))


if __name__ == "__main__":
    sys.exit(main())
