"""``make test-stack-experiments``: those whose system under test is a real component, each to its declared verdict.

``stack_real.py [--all | --long] [--lanes N] [--reports DIR] [NAME…]`` prints a line for each and what it came to, a
table at the end, and writes all of it to ``DIR/verdicts.json``; the folder of every run stays in DIR. Where the
embedded cluster emulates the component, both histories are compared once all have been played. Exits 1 when one ended
otherwise than declared, 77 (with REQUIRE=1: 1) when nothing could be run. ``--all`` are those that take about a
minute, ``--long`` the others; without them and without names it is a choice that ends within ten minutes. Each
experiment has a control plane of its own and waits most of the time, so there are as many at once as there are cores;
one of which nothing can be said, as where the machine stood still, is played again when all others have ended, alone,
twice at most, and its line says so.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "harness" / "run" / "virtual"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "behaviour"))

from declared import ROOT, Expected, declared
from histories import compared, wanted_lives
from plays import Ended, Plays
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
LIMIT_S = 420.0
"""A run that takes longer hangs: the longest are 120 s of load, and one minute for the cluster."""
AGAIN = 2
Each = Callable[[Sequence[Expected], int], Iterable[tuple[Expected, Ended | None, float]]]


@dataclass(slots=True)
class Row:
    """What is said of one experiment. ``took_s`` of its last run; ``again``: why each before that said nothing."""

    expected: Expected
    ended: Ended
    took_s: float
    again: tuple[str, ...] = ()
    compared: str = ""
    """How it compares with the embedded cluster; empty where nothing is."""
    differences: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        return self.ended.right and not self.differences

    def line(self) -> str:
        state = "as declared" if self.right else "NOT AS DECLARED"
        again = f"; played {len(self.again) + 1} times, for {' / '.join(self.again)}" if self.again else ""
        return f"{self.expected.name} ({self.expected.system}): {state}, {self.ended.text} ({self.took_s:.0f} s{again})"

    def told(self) -> dict[str, object]:
        folder = self.ended.folder
        return {
            "name": self.expected.name, "system": self.expected.system, "right": self.right,
            "verdict": self.ended.status, "check": self.expected.check, "sentence": self.ended.sentence,
            "seconds": round(self.took_s), "again": list(self.again), "compared": self.compared,
            "differences": list(self.differences), "folder": str(folder) if folder else None, "text": self.ended.text,
        }  # fmt: skip


def missing(expected: Expected) -> str:
    """Why it cannot be run here; empty where it can."""
    try:
        find_binaries(CONTROL_PLANE)
        find_addons(in_order(expected.components))
    except HarnessError as error:
        return str(error).splitlines()[0]
    return ""


def beside_embedded(row: Row) -> None:
    """Adds how the real component went beside the embedded cluster, where that is declared."""
    agreement, folder = row.expected.agreement, row.ended.folder
    if folder is None or agreement is None or not row.ended.right:
        return
    try:
        with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(io.StringIO()):
            ours = wanted_lives(agreement, run_virtually(row.expected.embedded_file, Path(place)).history)
        found = compared(agreement, ours, wanted_lives(agreement, History.load(folder)))
    except HarnessError as error:
        row.differences = (f"not compared: {error}",)
        return
    row.differences = tuple(found.differences)
    row.compared = f"{found.transitions} transitions, at most {found.latest_s:.1f} s apart ({found.latest})"


def play_all(chosen: Sequence[Expected], each: Each, lanes: int, verdicts: Path) -> list[Row]:
    """A row for each that there was time for. Prints each as it ends, and keeps ``verdicts`` up to date."""
    rows: dict[str, Row] = {}
    todo = list(chosen)
    for round_ in range(AGAIN + 1):
        for expected, ended, took_s in each(todo, 1 if round_ else lanes):
            before = rows.get(expected.name)
            if ended is None:
                print(f"{expected.name}: not run{' again' if before else ''}: its time was up", flush=True)
                continue
            again = (*before.again, before.ended.why_again) if before else ()
            row = rows[expected.name] = Row(expected, ended, took_s, again)
            verdicts.write_text(json.dumps([r.told() for r in rows.values()], indent=1, ensure_ascii=False) + "\n")
            print(row.line(), flush=True)
        todo = [row.expected for row in rows.values() if row.ended.why_again]
        if todo and round_ < AGAIN:
            print(f"again, alone, for nothing can be said of them: {', '.join(e.name for e in todo)}", flush=True)
    for row in rows.values():
        beside_embedded(row)
        if row.compared or row.differences:
            print(f"{row.expected.name}: beside the embedded cluster {row.compared}", flush=True)
            print("".join(f"    differs: {d}\n" for d in row.differences), end="", flush=True)
    verdicts.write_text(json.dumps([r.told() for r in rows.values()], indent=1, ensure_ascii=False) + "\n")
    return [rows[e.name] for e in chosen if e.name in rows]


def table(rows: Sequence[Row]) -> str:
    head = f"{'experiment':56} {'verdict':10} {'check':16} {'s':>4}  tries  as declared"
    each = [
        f"{r.expected.name:56} {r.ended.status:10} {r.expected.check:16} {r.took_s:4.0f}  {len(r.again) + 1:5}  "
        f"{'yes' if r.right else 'NO'}{', differs from the embedded one' if r.differences else ''}"
        for r in rows
    ]
    return "\n".join([head, *each])


def _end(number: int, frame: object) -> None:
    raise SystemExit(f"ended by {signal.Signals(number).name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of tests/stack/expected.yaml")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="all of them that take about a minute each")
    which.add_argument("--long", action="store_true", help="those that take longer, a quarter of an hour and more")
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
    every = args.all or args.long
    kind = [name for name, expected in known.items() if expected.long is args.long]
    chosen = [known[name] for name in args.names or (kind if every else CHOICE)]
    can = []
    for expected in chosen:
        if why := missing(expected):
            print(f"{expected.name}: not run: {why}", flush=True)
        else:
            can.append(expected)
    signal.signal(signal.SIGTERM, _end)
    reports = args.reports.resolve()
    reports.mkdir(parents=True, exist_ok=True)
    verdicts = reports / "verdicts.json"
    plays = Plays(reports, float("inf") if every or args.names else BUDGET_S, LIMIT_S)
    began_s = time.monotonic()
    rows = play_all(can, plays.each, max(1, args.lanes), verdicts)
    right = sum(row.right for row in rows)
    print(table(rows))
    print(
        f"{right} of {len(chosen)} experiments on real components as declared, {len(rows) - right} not, "
        f"{len(chosen) - len(rows)} not run; {time.monotonic() - began_s:.0f} s; {verdicts}"
    )
    if not rows:
        return 1 if os.environ.get("REQUIRE") == "1" else 77
    return int(right < len(rows))


if __name__ == "__main__":
    sys.exit(main())
