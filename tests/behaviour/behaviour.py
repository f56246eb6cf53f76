"""``make behaviour``: every scenario on the embedded control plane and on a real one, compared.

Exits 0 when no difference is left unexplained, 1 when one is or a scenario could not be judged, 77 when the programs of
the real one are missing (with REQUIRE=1 that is 1 too), 64 on a scenario that is not known.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bothsides.catalogue import SCENARIOS
from bothsides.judge import ROUNDS, TRIES, Judged, judge, judge_real, record, recorded
from bothsides.stage import Scenario
from bothsides.table import page, unrecorded

from fakes.nodes.node_status import KUBELET_VERSION
from harness.errors import TargetError
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.find import find_binaries


def main() -> int:
    args = _arguments()
    if unknown := set(args.names) - SCENARIOS.keys():
        print(f"unknown scenarios: {', '.join(sorted(unknown))}; known: {', '.join(SCENARIOS)}", file=sys.stderr)
        return 64
    chosen = [s for s in SCENARIOS.values() if (not args.names or s.name in args.names) and (s.quick or not args.quick)]
    left_out: list[str] = []
    if args.recorded:
        known = {s.name: plays for s in chosen if (plays := recorded(s))}
        left_out = [s.name for s in chosen if s.name not in known]
        judged = [judge(s, known[s.name]) for s in chosen if s.name in known]
    else:
        try:
            judged = _judge_real(chosen, args.rounds or ROUNDS if args.record else 0)
        except TargetError as missing:
            print(f"behaviour: cannot run: {missing}", file=sys.stderr)
            return 1 if os.environ.get("REQUIRE") == "1" else 77
    for each in judged:
        tell(each)
        if args.record:
            record(each.scenario, each.plays)
    if args.table:
        args.table.write_text(page(judged, KUBELET_VERSION.removeprefix("v")) + unrecorded(left_out))
    for name in (unjudged := [s.name for s in chosen if s.name not in {*left_out, *(j.scenario.name for j in judged)}]):
        print(f"{name}: NOT JUDGED, the machine was too crowded in each of its plays")
    failed = [j for j in judged if not j.agrees]
    plays, agreed = sum(len(j.plays) for j in judged), sum(len(j.agreeing) for j in judged)
    print(f"{len(judged)} scenarios, {len(judged) - len(failed)} agree; {plays} plays, {agreed} agree")
    return 1 if failed or unjudged else 0


def _judge_real(scenarios: Sequence[Scenario], rounds: int) -> list[Judged]:
    """``rounds``: each scenario so often in any case; 0: until it agrees, within ``TRIES``."""
    binaries = find_binaries(CONTROL_PLANE)

    def told(text: str) -> None:
        print(text, flush=True)

    with tempfile.TemporaryDirectory(prefix="behaviour-") as folder:
        return asyncio.run(
            judge_real(scenarios, binaries, Path(folder), told, plays=rounds or TRIES, all_of_them=rounds > 0)
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Plays scenarios on both control planes and compares what happened.")
    parser.add_argument("names", nargs="*", help="scenarios; all without any")
    parser.add_argument("--quick", action="store_true", help="only the quick subset")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--record", action="store_true", help="keep what the real side did under recorded/, every play")
    how.add_argument("--recorded", action="store_true", help="compare with what was kept, without a real side")
    parser.add_argument("--rounds", type=int, help=f"with --record: how many plays of each (without it {ROUNDS})")
    parser.add_argument("--table", type=Path, help="write the page of results into this file")
    return parser.parse_args()


def tell(judged: Judged) -> None:
    plays = f"{len(judged.agreeing)} of {len(judged.plays)} plays"
    found = judged.shown
    apart = f"at most {found.latest_s:.1f} s apart ({found.latest})"
    verdict = "agrees" if judged.agrees else "DIFFERS"
    print(f"{judged.scenario.name}: {verdict} in {plays}, {found.transitions} transitions, {apart}")
    for difference in judged.differences:
        print(f"    {difference}")


if __name__ == "__main__":
    sys.exit(main())
