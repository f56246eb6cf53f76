"""Everything real but the silicon: real vLLM servers as pods of real kubelets, and the same experiment on the embedded
cluster, where they are processes. ``make test-real``.

A node that loses its power loses what was in flight on it, so ``graceful_drain`` has to fail, and for nothing else; the
drain of the other node has to wait for the budget (``pdb`` passes) and to lose nothing. There is no second book of the
requests, so ``requests`` is not asked. Of a machine that stood still nothing can be said: such a run is repeated, twice
at most.

Exits 0 when all came out as it should, 1 when something did not, 77 with the reason where it cannot run (1 instead with
REQUIRE=1). ``--only node|embedded`` does a part; ``--reports DIR`` keeps the runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "real_vllm")]

from real_cluster_run import run  # noqa: E402 - after the path
from real_cluster_steps import NotSeen, Steps, side_by_side, steps_of  # noqa: E402
from real_install import SLOW, CannotInstall, installed  # noqa: E402
from real_ran import Ran  # noqa: E402

from harness.errors import HarnessError  # noqa: E402
from harness.stack.build import build  # noqa: E402
from harness.stack.find import find_binaries  # noqa: E402
from harness.targets.node.target import NodeTarget, refuse_unable_machine  # noqa: E402

CANNOT_CODE = 77
TRIES = 3
TARGETS = ("node", "embedded")
MEMORY_GIB_MIN = 14
"""Three servers at a time, while one takes another's place."""


def why_not() -> str | None:
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return f"the build of vLLM for CPUs is for Linux on x86-64, this is {sys.platform} on {os.uname().machine}"
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    if gib < MEMORY_GIB_MIN:
        return f"three servers at a time need {MEMORY_GIB_MIN} GiB of memory, here are {gib:.0f}"
    try:
        refuse_unable_machine()
        try:
            find_binaries(NodeTarget.programs)
        except HarnessError:
            build(NodeTarget.programs, lambda text: print(text, flush=True))
    except HarnessError as error:
        return str(error)
    return None


def wrong_with(ran: Ran) -> str | None:
    """None: as it should be."""
    if not (ran.folder / "verdict.json").exists():
        return f"no verdict:\n{ran.out[-3000:]}"
    drain, pdb = ran.finding("graceful_drain"), ran.finding("pdb")
    lost = [row["facts"] for row in drain["evidence"] if row["ref"].startswith("requests:") and "cause" in row["facts"]]
    elsewhere = [row for row in lost if row["node"] not in (None, "spot-1")]
    if drain["status"] == "fail" and (elsewhere or not lost):
        return f"what was lost was not lost with spot-1: {elsewhere}"
    if drain["status"] == "unknown" or not drain["numbers"].get("streams_at_risk"):
        return f"graceful_drain: {drain['sentence']}"
    if pdb["judged"] != "pass":
        return f"pdb {pdb['judged']}: {pdb['sentence']}"
    return None


def stalled(ran: Ran) -> str | None:
    """Why nothing can be said of this run."""
    if not (ran.folder / "verdict.json").exists():
        return None
    finding: dict[str, Any] = ran.finding("machine_did_not_stall")
    return None if finding["status"] == "pass" else str(finding["sentence"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=TARGETS)
    parser.add_argument("--reports", type=Path, default=HERE.parents[1] / "reports/real")
    args = parser.parse_args()
    try:
        if reason := why_not():
            raise CannotInstall(reason)
        places = installed(SLOW)
    except CannotInstall as error:
        print(f"it cannot run here: {error}")
        return 1 if os.environ.get("REQUIRE") == "1" else CANNOT_CODE
    wrong = 0
    found: dict[str, Steps] = {}
    for target in (args.only,) if args.only else TARGETS:
        for attempt in range(1, TRIES + 1):
            began_s = time.monotonic()
            ran = run(places, target, attempt, args.reports)
            why = wrong_with(ran)
            try:
                if why is None:
                    found[target] = steps_of(ran.folder)
            except NotSeen as error:
                why = str(error)
            said = "as it should be" if why is None else f"WRONG: {why}"
            print(f"{target}, try {attempt} ({time.monotonic() - began_s:.0f} s, exit code {ran.code}): {said}")
            if (ran.folder / "verdict.json").exists():
                print(f"  {ran.verdict['sentence']}\n  {ran.folder}", flush=True)
            if why is None or (still := stalled(ran)) is None:
                break
            print(f"  the machine stood still, so it is repeated: {still}", flush=True)
        wrong += why is not None
    print(side_by_side(found))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
