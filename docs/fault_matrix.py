"""Plays every variant of every fault in virtual time and writes docs/fault-matrix.json: ``make fault-matrix``.

``docs/generate.py`` makes a table of it. A variant that is not observed, that is not healed, or whose planted no-op is
taken for the real thing, makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from harness.faults.fault import Variant
from harness.faults.registry import FAULTS
from harness.run.virtual.rehearsal import rehearse

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "fault-matrix.json"
WORKLOAD = ROOT / "experiments" / "manifests" / "llm.yaml"
PROCESSES_MAX = 2


@dataclass(frozen=True)
class Row:
    fault: str
    variant: str
    observed: bool
    healed: bool | None
    no_op_found: bool
    said: str
    cpu_s: float

    @property
    def good(self) -> bool:
        return self.observed and self.healed is not False and self.no_op_found


def variants(only: str = "") -> list[tuple[str, Variant]]:
    return [(name, v) for name, fault in FAULTS.items() for v in fault.variants if only in f"{name}: {v.name}"]


def play(job: tuple[str, Variant]) -> Row:
    name, variant = job
    began_s = time.process_time()
    try:
        real = rehearse(FAULTS[name], variant, WORKLOAD)
        no_op = rehearse(FAULTS[name], variant, WORKLOAD, disconnected=True)
    except Exception as error:  # a defect of a world must not hide the rows of the others
        return Row(name, variant.name, False, False, False, f"{type(error).__name__}: {error}", 0.0)
    found = not no_op.observed and "not_observed" in no_op.stages
    said = real.said if real.observed else f"REAL {real.said}"
    said += "" if found else f" NO-OP {no_op.said}"
    cpu_s = time.process_time() - began_s
    return Row(name, variant.name, real.observed, real.healed, found, said, round(cpu_s, 2))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="variants whose `fault: variant` contains this; writes no file")
    parser.add_argument("--processes", type=int, default=PROCESSES_MAX)
    args = parser.parse_args()
    jobs = variants(args.only)
    with multiprocessing.get_context("spawn").Pool(min(PROCESSES_MAX, args.processes)) as pool:
        rows: list[Row] = []
        for row in pool.imap(play, jobs):
            rows.append(row)
            print("ok  " if row.good else "BAD ", f"{row.fault}: {row.variant} ({row.cpu_s} s CPU)", flush=True)
            if args.only or not row.good:
                print("     ", row.observed, row.healed, row.no_op_found, row.said, flush=True)
    print(f"{len(rows)} variants, {sum(row.cpu_s for row in rows):.0f} s CPU, {sum(not r.good for r in rows)} bad")
    if not args.only:
        kept = [
            {"fault": r.fault, "variant": r.variant, "observed": r.observed, "healed": r.healed, "no_op": r.no_op_found}
            for r in rows
        ]
        FILE.write_text(json.dumps(kept, indent=1) + "\n")
    return int(any(not row.good for row in rows))


if __name__ == "__main__":
    sys.exit(main())
