"""All cases against both servers, the table of them, and an exit code: 0 agree, 1 do not, 77 cannot be played here."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from compare import Outcome, compare
from real import real_server
from wire_cases import areas

from harness.errors import TargetError
from harness.stack.catalogue import CONTROL_PLANE
from harness.stack.find import Binaries, find_binaries

_CANNOT = 77


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin-dir", type=Path, help="where kube-apiserver, etcd and kube-controller-manager are")
    parser.add_argument("--write", type=Path, help="the page to write the table to")
    parser.add_argument("--area", action="append", help="only these areas (then nothing is written)")
    parser.add_argument(
        "--rounds", type=int, default=1, help="play everything so often; a case fails if it does in any"
    )
    args = parser.parse_args()
    try:
        binaries = find_binaries(CONTROL_PLANE, args.bin_dir)
    except TargetError as missing:
        print(missing, file=sys.stderr)
        return 1 if os.environ.get("REQUIRE") == "1" else _CANNOT
    began_s = time.monotonic()
    found = asyncio.run(_play(binaries, args.area, args.rounds))
    took_s = time.monotonic() - began_s
    failed = [outcome for outcomes in found.values() for outcome in outcomes if outcome.failed]
    for outcome in failed:
        print(outcome)
    print(table(found))
    print(f"{sum(map(len, found.values()))} cases, {args.rounds} rounds, {len(failed)} failed, {took_s:.0f} s")
    if args.write and not failed and not args.area:
        args.write.write_text(page(found, binaries.versions()["kube-apiserver"], args.rounds))
    return 1 if failed else 0


async def _play(binaries: Binaries, only: Sequence[str] | None, rounds: int) -> dict[str, list[Outcome]]:
    """Of each case its first failure, or its last outcome."""
    chosen = [(area, case) for area, cases in areas().items() if not only or area in only for case in cases]
    kept: dict[int, Outcome] = {}
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        async with real_server(binaries, Path(folder) / "control-plane") as server:
            for number in range(rounds):
                played = await compare([case for _, case in chosen], server, f"r{number}")
                kept |= {n: outcome for n, outcome in enumerate(played) if n not in kept or not kept[n].failed}
    found: dict[str, list[Outcome]] = {}
    for n, (area, _) in enumerate(chosen):
        found.setdefault(area, []).append(kept[n])
    return found


def table(found: Mapping[str, Sequence[Outcome]]) -> str:
    rows = [
        "| area | cases | errors and races | agree in all | with explained differences | fail |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    counts = {area: _counts(outcomes) for area, outcomes in found.items()}
    rows += [f"| {area} | " + " | ".join(map(str, c)) + " |" for area, c in counts.items()]
    total = [sum(column) for column in zip(*counts.values(), strict=True)]
    return "\n".join([*rows, "| **all** | " + " | ".join(f"**{n}**" for n in total) + " |"])


def _counts(outcomes: Sequence[Outcome]) -> tuple[int, int, int, int, int]:
    failed = sum(o.failed for o in outcomes)
    explained = sum(bool(o.case.explained) and not o.failed for o in outcomes)
    errors = sum(o.case.error for o in outcomes)
    return len(outcomes), errors, len(outcomes) - failed - explained, explained, failed


def page(found: Mapping[str, Sequence[Outcome]], version: str, rounds: int) -> str:
    reasons: dict[str, list[str]] = {}
    for area, outcomes in found.items():
        for outcome in outcomes:
            for why in dict.fromkeys(e.why for e in outcome.case.explained):
                reasons.setdefault(why, []).append(f"{area}: {outcome.case.name}")
    lines = [
        "# The embedded Kubernetes API beside a real one",
        "",
        "Written by `make conformance` (`tests/conformance/whole.py`); not edited by hand. Each case is a few",
        f"requests, sent to a kube-apiserver {version} and to the embedded server; status, headers, bodies and the",
        "watch events that follow are compared to each other. Identities, times and versions are replaced by the order",
        "in which they appear. A difference that is not explained beside its case is a failure, and so is an",
        f"explanation that explains nothing. Everything was played {rounds} times in a row; a case that failed in one",
        "of them would count as failed.",
        "",
        table(found),
        "",
        "## Differences that are meant to be",
        "",
    ]
    for why, where in reasons.items():
        lines += [f"- {why[:1].upper()}{why[1:]}:", *(f"  - {place}" for place in where)]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
