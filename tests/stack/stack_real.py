"""``make test-stack-experiments``: those whose system under test is a real component, each to its declared verdict.

``stack_real.py [--all] [--reports DIR] [NAME…]`` prints a line for each and what it came to in the last one. Where the
embedded cluster emulates the component, both histories are compared, too. Exits 1 when one ended otherwise than
declared, 77 (with REQUIRE=1: 1) when nothing could be run. Without ``--all`` it is a choice that ends within ten
minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
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


def missing(expected: Expected) -> str:
    """Why it cannot be run here; empty where it can."""
    try:
        find_binaries(CONTROL_PLANE)
        find_addons(in_order(expected.components))
    except HarnessError as error:
        return str(error).splitlines()[0]
    return ""


def run(expected: Expected, reports: Path) -> Ended:
    command = [sys.executable, "-m", "harness.cli", "run", str(expected.file), "--target", "controlplane", "--plain"]
    ended = subprocess.run(
        [*command, "--seed", "1", "--reports", str(reports)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    folders = sorted((reports / expected.name).glob("2*"))
    verdict = json.loads((folders[-1] / "verdict.json").read_text()) if folders else None
    if verdict is None:
        return Ended(False, f"no verdict, exit {ended.returncode}\n{(ended.stdout + ended.stderr)[-1500:]}")
    said = {finding["check"]: finding for finding in verdict["findings"]}
    own = said[expected.check]
    right = verdict["status"] == own["judged"] == expected.verdict and expected.words in own["sentence"]
    text = f"{verdict['status']}: {own['sentence']}"
    if not right:
        why = [f"{name} {f['judged']}" for name, f in said.items() if f["judged"] != "pass" and name != expected.check]
        text += f" ({expected.verdict} with {expected.words!r} was declared; {', '.join(why) or 'all else passed'})"
        unheard = [name for name in STALLED if said[name]["judged"] != "pass"]
        return Ended(False, text, verdict["status"] == "unknown" and bool(unheard))
    differences = _differences(expected, folders[-1])
    return Ended(not differences, text + "".join(f"\n    differs from the embedded one: {d}" for d in differences))


def _differences(expected: Expected, real: Path) -> list[str]:
    if expected.agreement is None:
        return []
    with tempfile.TemporaryDirectory() as folder:
        ours = wanted_lives(expected.agreement, run_virtually(expected.file, Path(folder)).history)
    return compared(expected.agreement, ours, wanted_lives(expected.agreement, History.load(real))).differences


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of tests/stack/expected.yaml")
    parser.add_argument("--all", action="store_true", help="all of them, however long it takes")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports" / "stack")
    args = parser.parse_args()
    known = {e.name: e for e in declared() if "controlplane" in e.on}
    if unknown := set(args.names) - known.keys():
        print(f"unknown: {', '.join(sorted(unknown))}; there is: {', '.join(known)}", file=sys.stderr)
        return 64
    chosen = [known[name] for name in args.names or (known if args.all else CHOICE)]
    began_s, right, wrong, left = time.monotonic(), 0, 0, []
    for expected in chosen:
        late = not (args.all or args.names) and time.monotonic() - began_s > BUDGET_S
        if why := "its time was up" if late else missing(expected):
            print(f"{expected.name}: not run: {why}", flush=True)
            left.append(expected.name)
            continue
        started_s = time.monotonic()
        ended = run(expected, args.reports)
        if ended.unknown:  # nothing can be said of a run in which the machine stood still: once more
            ended = run(expected, args.reports)
        right, wrong = right + ended.right, wrong + (not ended.right)
        state = "as declared" if ended.right else "NOT AS DECLARED"
        print(f"{expected.name} ({expected.system}): {state}, {ended.text} ({time.monotonic() - started_s:.0f} s)")
        sys.stdout.flush()
    print(f"{right} of {len(chosen)} experiments on real components as declared, {wrong} not, {len(left)} not run")
    if not right and not wrong:
        return 1 if os.environ.get("REQUIRE") == "1" else 77
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
