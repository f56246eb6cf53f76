"""``make behaviour``: every scenario on the embedded control plane and on a real one, compared.

Exits 0 when no difference is left unexplained, 1 when one is, 77 when the binaries of the real one are missing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

from bothsides.catalogue import SCENARIOS
from bothsides.judge import Judged, judge, play_real, record, recorded

from harness.errors import TargetError
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.find import find_binaries


def main() -> int:
    parser = argparse.ArgumentParser(description="Plays scenarios on both control planes and compares what happened.")
    parser.add_argument("names", nargs="*", help="scenarios; all without any")
    parser.add_argument("--quick", action="store_true", help="only the quick subset")
    parser.add_argument("--record", action="store_true", help="keep what the real side did under recorded/")
    parser.add_argument("--recorded", action="store_true", help="compare with what was kept, without a real side")
    parser.add_argument("--table", type=Path, help="write the table of results into this file")
    args = parser.parse_args()
    if unknown := set(args.names) - SCENARIOS.keys():
        print(f"unknown scenarios: {', '.join(sorted(unknown))}; known: {', '.join(SCENARIOS)}", file=sys.stderr)
        return 64
    chosen = [s for s in SCENARIOS.values() if (not args.names or s.name in args.names) and (s.quick or not args.quick)]
    if args.recorded:
        played = {s.name: recorded(s) or "there is no recording" for s in chosen}
    else:
        try:
            binaries = find_binaries(CONTROL_PLANE)
        except TargetError as missing:
            print(f"behaviour: cannot run: {missing}", file=sys.stderr)
            return 1 if os.environ.get("REQUIRE") == "1" else 77
        with tempfile.TemporaryDirectory(prefix="behaviour-") as folder:
            played = asyncio.run(play_real(chosen, binaries, Path(folder), print))
    judged = []
    for scenario in chosen:
        real = played[scenario.name]
        if args.record and not isinstance(real, str):
            record(scenario, real)
        judged.append(judge(scenario, real))
        tell(judged[-1])
    failed = [j for j in judged if not j.comparison.agrees]
    print(f"{len(judged)} scenarios, {len(judged) - len(failed)} agree")
    return 1 if failed else 0


def tell(judged: Judged) -> None:
    found = judged.comparison
    verdict = "agrees" if found.agrees else "DIFFERS"
    print(
        f"{judged.scenario.name}: {verdict}, {found.transitions} transitions, at most {found.latest_s:.1f} s apart "
        f"({found.latest})"
    )
    for difference in found.differences:
        print(f"    {difference}")


if __name__ == "__main__":
    sys.exit(main())
