"""Runs every planted bug over some seeds, and the healthy world over more, and writes what came of each.

``python tests/matrix/verdict_matrix.py`` runs all in virtual time and prints the table; ``--write`` puts it into
docs/verdict-matrix.md. ``--rows NAME…`` runs some only, ``--keep DIR`` keeps the runs' folders, ``--real`` runs the
rows that are marked for it with sockets and the wall clock, ``--causes`` asks of one run of each whether its first
sentence names what was planted, ``--perturb`` judges one history of each again as worse
recorders would have seen it. Exits 1 when something was missed, found by another check, alarmed for nothing, or turned.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from matrix_causes import cause_line, missing_words
from matrix_cells import Cell, run_cell
from matrix_mishaps import Mishap
from matrix_page import HEADS, PAGE, updated
from matrix_real import run_for_real
from matrix_row import Row
from matrix_rows import HEALTHY, ROWS
from matrix_table import Came, bad, came_of, healthy_line, perturbed_line, real_line, row_line

CAUSES_SEED = 3
Job = tuple[str, Sequence[str], str, int, Path | None, bool, Mishap | None]
OfRows = list[tuple[Row, list[Cell]]]
OfHealthy = list[tuple[str, list[Cell]]]


def main() -> int:
    args = _arguments()
    rows = [row for row in ROWS if not args.rows or row.name in args.rows]
    if unknown := set(args.rows) - {row.name for row in ROWS}:
        sys.exit(f"there is no row {', '.join(sorted(unknown))}; there are: {', '.join(row.name for row in ROWS)}")
    if args.causes:
        return _causes(args, rows)
    return _for_real(args, rows) if args.real else _in_virtual_time(args, rows)


def _causes(args: argparse.Namespace, rows: list[Row]) -> int:
    """One run of each row: does its first sentence name what was planted?"""
    jobs: list[Job] = [(r.experiment, r.bugs, r.name, CAUSES_SEED, args.keep, False, r.mishap) for r in rows]
    cells = {cell.row: cell for cell in _run_all(jobs, args.jobs)}
    lines = {row.name: cause_line(row, cells[row.name]) for row in rows}
    _print({"causes": lines})
    unnamed = [f"{row.name}: without {missing}" for row in rows if (missing := missing_words(row, cells[row.name]))]
    print(f"\n{len(rows) - len(unnamed)} of {len(rows)} name the cause", *unnamed, sep="\n")
    if args.write:
        _write({"causes": lines})
    return 1 if unnamed else 0


def _in_virtual_time(args: argparse.Namespace, rows: list[Row]) -> int:
    seeds = range(1, (1 if args.perturb else args.seeds) + 1)
    jobs: list[Job] = [
        (r.experiment, r.bugs, r.name, seed, args.keep, args.perturb, r.mishap) for r in rows for seed in seeds
    ]
    if not args.rows:
        jobs += [
            (e, (), e, seed, args.keep, args.perturb, None)
            for e, most in HEALTHY.items()
            for seed in range(1, (1 if args.perturb else min(most, args.healthy_seeds)) + 1)
        ]
    began_s = time.monotonic()
    cells = list(_run_all(jobs, args.jobs))
    of_rows: OfRows = [(row, [c for c in cells if c.row == row.name]) for row in rows]
    of_healthy: OfHealthy = [(e, of) for e in HEALTHY if (of := [c for c in cells if c.row == e])]
    lines = _lines(of_rows, of_healthy, perturbed=args.perturb)
    cpu_s = sum(cell.cpu_s for cell in cells)
    _print(lines)
    print(f"\n{len(cells)} runs, {cpu_s:.0f} s of CPU, {time.monotonic() - began_s:.0f} s")
    if args.write:
        _write(lines)
    if args.show:
        print(*(f"\n{row.name} seed {c.seed}: {_said(row, c)}" for row, of in of_rows for c in of), sep="")
    wrong = bad(of_rows, of_healthy)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


def _for_real(args: argparse.Namespace, rows: list[Row]) -> int:
    lines: dict[str, str] = {}
    wrong = 0
    for row in rows:
        if not row.real:
            continue
        cell, took_s = run_for_real(row, 1, args.keep)
        lines[row.name] = real_line(row, cell, took_s)
        wrong += came_of(row, cell) is not Came.RIGHT
        print(lines[row.name], flush=True)
        if args.show:
            print(_said(row, cell))
    if args.write:
        _write({"real": lines})
    return 1 if wrong else 0


def _lines(of_rows: OfRows, of_healthy: OfHealthy, *, perturbed: bool) -> dict[str, dict[str, str]]:
    if perturbed:
        every = [*((row.name, cells) for row, cells in of_rows), *of_healthy]
        return {"perturbed": {name: perturbed_line(name, cells) for name, cells in every}}
    return {
        "rows": {row.name: row_line(row, cells) for row, cells in of_rows},
        "healthy": {e: healthy_line(e, cells) for e, cells in of_healthy},
    }


def _print(lines: dict[str, dict[str, str]]) -> None:
    for section, own in lines.items():
        if own:
            print("", HEADS[section], *own.values(), sep="\n")


def _write(lines: dict[str, dict[str, str]]) -> None:
    names = [row.name for row in ROWS]
    real = [row.name for row in ROWS if row.real]
    order = {"rows": names, "healthy": list(HEALTHY), "causes": names, "real": real, "perturbed": [*names, *HEALTHY]}
    PAGE.write_text(updated(PAGE.read_text(), lines, order))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--healthy-seeds", type=int, default=50)
    parser.add_argument("--rows", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=None, metavar="DIR")
    parser.add_argument("--real", action="store_true", help="run the rows that are marked for it for real, one by one")
    parser.add_argument(
        "--perturb", action="store_true", help="one seed of each, judged again as seen by worse recorders"
    )
    parser.add_argument("--causes", action="store_true", help="one run of each: does its first sentence name the cause")
    parser.add_argument("--show", action="store_true", help="print what the check said in each cell")
    parser.add_argument("--write", action="store_true", help="write the lines into docs/verdict-matrix.md")
    return parser.parse_args()


def _run_all(jobs: list[Job], processes: int) -> Iterable[Cell]:
    """Each process is warm after its first cell: most of a cold one's time goes into imports."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for cell in pool.map(_run_job, jobs):
            failed = f" ({', '.join(cell.failed or cell.unsure)})" if cell.status != "pass" else ""
            print(f"{cell.row:44} seed {cell.seed:<3} {cell.status}{failed}", flush=True)
            yield cell


def _run_job(job: Job) -> Cell:
    *run, perturb, mishap = job
    return run_cell(*run, perturb=perturb, mishap=mishap)


def _said(row: Row, cell: Cell) -> str:
    said = cell.of(row.check, row.words)
    return f"{said.judged}: {said.text}" if said else f"{row.check} was not asked for"


if __name__ == "__main__":
    sys.exit(main())
