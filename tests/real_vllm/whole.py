"""Real vLLM servers beside the fake, and as the pods of an experiment. ``make test-real-vllm``.

Exits 0 when all came out as it should, 1 when something did not, 77 with the reason where there can be no real vLLM
(1 instead with REQUIRE=1). ``--only parity|runs|default|drain`` does a part (``default`` and ``drain`` are one run
each); ``--reports DIR`` keeps the runs.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "fakes/vllm")]

from real_install import CannotInstall, RealVllm, installed  # noqa: E402 - after the path
from real_parity import compare  # noqa: E402
from real_ran import Ran  # noqa: E402
from real_runs import ARGS, run  # noqa: E402
from real_server import NotServing  # noqa: E402

CANNOT_CODE = 77
MEMORY_GIB_MIN = 8
TRIES = 3
"""Of a machine that was crowded or stood still nothing can be said, so such a run is repeated."""
DEFAULT, DRAIN = ARGS
RUNS = {"parity": (), "runs": (DEFAULT, DRAIN), "default": (DEFAULT,), "drain": (DRAIN,)}
"""Which runs a part has."""


def why_not() -> str | None:
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return f"the build of vLLM for CPUs is for Linux on x86-64, this is {sys.platform} on {os.uname().machine}"
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    if gib < MEMORY_GIB_MIN:
        return f"two servers need {MEMORY_GIB_MIN} GiB of memory, here are {gib:.0f}"
    return None


def parity(places: RealVllm, reports: Path) -> int:
    compared = asyncio.run(compare(places, reports / "parity-server.log"))
    wrong = [c for c in compared if not c.same]
    for c in wrong:
        print(f"differs: {c.name}\n  real: {c.real}\n  fake: {c.fake}")
    print(f"parity: {len(compared) - len(wrong)} of {len(compared)} the same")
    return len(wrong)


def judged(ran: Ran) -> bool:
    """By default a real server loses what it is answering, and the verdict names it; given time it loses nothing, and
    the run passes."""
    drain = ran.finding("graceful_drain")
    print(f"{ran.name}: exit code {ran.code}; graceful_drain {drain['status']}: {drain['sentence']}\n  {ran.folder}")
    if ran.name == DEFAULT:
        return ran.code == 1 and drain["judged"] == "fail" and "(request" in drain["sentence"]
    return ran.code == 0 and drain["judged"] == "pass"


def played(places: RealVllm, name: str, reports: Path) -> bool:
    for attempt in range(1, TRIES + 1):
        ran = run(places, name, reports / f"try-{attempt}")
        if not (ran.folder / "verdict.json").exists():
            print(f"{name}: no verdict:\n{ran.out[-3000:]}")
            return False
        if judged(ran):
            return True
        machine = ran.finding("machine_did_not_stall")
        if machine["status"] == "pass":
            return False
        print(f"  {machine['sentence']}", flush=True)
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=tuple(RUNS))
    parser.add_argument("--reports", type=Path, default=HERE.parents[1] / "reports/real-vllm")
    args = parser.parse_args()
    try:
        if reason := why_not():
            raise CannotInstall(reason)
        places = installed()
    except CannotInstall as error:
        print(f"no real vLLM here: {error}")
        return 1 if os.environ.get("REQUIRE") == "1" else CANNOT_CODE
    args.reports.mkdir(parents=True, exist_ok=True)
    failed = 0
    if args.only in (None, "parity"):
        try:
            failed += parity(places, args.reports)
        except NotServing as error:
            print(f"parity: {error}")
            failed += 1
    for name in RUNS[args.only or "runs"]:
        failed += not played(places, name, args.reports)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
