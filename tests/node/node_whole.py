"""Experiments on real kubelets, each to its declared verdict, hollow kubelets beside real ones, and rounds of up and
down that leave nothing.

``make test-node``. Exits 0 when all came out as it should, 1 when something did not, 77 with the reason where there can
be no real nodes (1 instead with REQUIRE=1). ``--only experiments|rounds|kubelet`` does a part.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE)]

from kubelet_beside import compare  # noqa: E402 - after the path
from kubelet_scenarios import SCENARIOS  # noqa: E402
from node_leavings import inhabitants, still_there, things  # noqa: E402
from node_rounds import one_round  # noqa: E402

from harness.errors import HarnessError  # noqa: E402
from harness.stack.build import build  # noqa: E402
from harness.stack.find import find_binaries  # noqa: E402
from harness.targets.node.target import NodeTarget, refuse_unable_machine  # noqa: E402

CANNOT_CODE = 77
PASS, FAIL, UNKNOWN = 0, 1, 2
EXPECTED: dict[str, tuple[int, str]] = {
    "plugin-late-on-a-new-node": (PASS, "recovery"),
    "plugin-crashes-under-pods": (PASS, "recovery"),
    "kubelet-silent": (PASS, "recovery"),
    "power-loss": (PASS, "recovery"),
    "drain-under-budget": (PASS, "pdb"),
    "no-grace": (FAIL, "graceful_drain"),
    "prestop": (PASS, "graceful_drain"),
    "no-prestop": (FAIL, "graceful_drain"),
    "memory-pressure": (FAIL, "graceful_drain"),
}
"""Exit code, and the check that has to say it."""
TRIES = 2
"""Once more where the machine stood still, and only there: nothing can be said of such a run."""
LOOK_S = 5.0
STATUS = {PASS: "pass", FAIL: "fail"}


def run_experiment(name: str, reports: Path) -> tuple[bool, str]:
    code, check = EXPECTED[name]
    said = ""
    for attempt in range(1, TRIES + 1):
        argv = [sys.executable, "-m", "harness.cli", "run", f"experiments/nodes/{name}.yaml", "--target", "node"]
        argv += ["--plain", "--seed", str(attempt), "--reports", str(reports)]
        ended, words, left = _run(argv, reports / name)
        runs = sorted((reports / name).glob("*/verdict.json"))
        verdict = json.loads(runs[-1].read_text()) if runs else {"findings": []}
        found = {f["check"]: f["status"] for f in verdict["findings"]}
        said = f"exit {ended}, {check} {found.get(check)}, left: {', '.join(sorted(left)) or 'nothing'}"
        if ended == code and found.get(check) == STATUS[code]:
            return not left, said
        if found.get("machine_did_not_stall") == "pass" or ended != UNKNOWN:
            break
        said += ", the machine stood still"
    return False, f"{said}\n{words}"


def _run(argv: list[str], folder: Path) -> tuple[int, str, set[str]]:
    """Exit code, last words, and what was left of its machines."""
    before = things(folder)
    lived: set[str] = set()
    with tempfile.TemporaryFile("w+") as out, subprocess.Popen(argv, cwd=ROOT, stdout=out, stderr=out) as running:
        while running.poll() is None:
            lived |= inhabitants(folder)
            time.sleep(LOOK_S)
        out.seek(0)
        words = out.read()[-4000:]
    left = {thing for thing in things(folder) - before if not thing.startswith("file " + str(folder))}
    return running.returncode, words, left | still_there(lived)


def experiments(reports: Path, names: list[str] | None) -> int:
    wrong = 0
    for name in names or EXPECTED:
        began_s = time.monotonic()
        right, said = run_experiment(name, reports)
        wrong += not right
        print(f"{name}: {'as declared' if right else 'WRONG'} ({time.monotonic() - began_s:.0f} s): {said}", flush=True)
    return wrong


def rounds(count: int) -> int:
    done = []
    for number in range(count):
        with tempfile.TemporaryDirectory(prefix="gpu-harness-node-") as folder:
            done.append(one_round(Path(folder), kill=number % 2 == 1))
        last = done[-1]
        how = "kill -9" if last.killed else "down"
        left = ", ".join(last.left) or "nothing"
        print(f"round {number + 1}: up {last.up_s:.1f} s, {how} {last.gone_s:.1f} s, left: {left}", flush=True)
    if done:
        for kind in (False, True):
            gone = [r.gone_s for r in done if r.killed is kind]
            print(f"{'kill -9' if kind else 'down'}: {max(gone, default=0):.1f} s at most")
        print(
            f"up: {statistics.median(r.up_s for r in done):.1f} s (median), {max(r.up_s for r in done):.1f} s at most"
        )
    return sum(bool(r.left) for r in done)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=("experiments", "rounds", "kubelet"))
    parser.add_argument("--name", action="append", choices=EXPECTED, help="of an experiment, beside others so named")
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="of kubelets, beside others so named")
    parser.add_argument("--rounds", type=int, default=6, help="of up and down, beside those of the experiments")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports/node")
    args = parser.parse_args()
    try:
        refuse_unable_machine()
        try:
            find_binaries(NodeTarget.programs)
        except HarnessError:
            build(NodeTarget.programs, lambda text: print(text, flush=True))
            find_binaries(NodeTarget.programs)
    except HarnessError as error:
        print(f"there can be no real nodes here: {error}")
        return FAIL if os.environ.get("REQUIRE") == "1" else CANNOT_CODE
    wrong = 0
    if args.only in (None, "experiments"):
        wrong += experiments(args.reports, args.name)
    if args.only in (None, "kubelet"):
        wrong += compare(args.reports, args.scenario or ())
    if args.only in (None, "rounds"):
        wrong += rounds(args.rounds)
    print("all as declared, and nothing left behind" if not wrong else f"{wrong} not as they should be")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
