"""Runs every planted bug over some seeds, and the healthy world over more, and writes what came of each.

``python tests/matrix/verdict_matrix.py`` runs all in virtual time and prints the table; ``--write`` puts it into
docs/verdict-matrix.md. ``--rows NAME…`` runs some only, ``--keep DIR`` keeps the runs' folders. Exits 1 when something
was missed, found by another check, or alarmed for nothing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from matrix_cells import Cell, run_cell
from matrix_row import ROOT, Row
from matrix_rows import HEALTHY, ROWS
from matrix_table import HEALTHY_HEAD, ROW_HEAD, bad, healthy_line, row_line

PAGE = ROOT / "docs" / "verdict-matrix.md"
Job = tuple[str, Sequence[str], str, int, Path | None]


def main() -> int:
    args = _arguments()
    rows = [row for row in ROWS if not args.rows or row.name in args.rows]
    if unknown := set(args.rows) - {row.name for row in ROWS}:
        sys.exit(f"there is no row {', '.join(sorted(unknown))}; there are: {', '.join(row.name for row in ROWS)}")
    seeds = range(1, args.seeds + 1)
    jobs: list[Job] = [(row.experiment, row.bugs, row.name, seed, args.keep) for row in rows for seed in seeds]
    if not args.rows:
        jobs += [(e, (), e, seed, args.keep) for e in HEALTHY for seed in range(1, args.healthy_seeds + 1)]
    began_s = time.monotonic()
    cells = list(_run_all(jobs, args.jobs))
    of_rows = [(row, [c for c in cells if c.row == row.name]) for row in rows]
    of_healthy = [(e, of) for e in HEALTHY if (of := [c for c in cells if c.row == e])]
    text = _tables(of_rows, of_healthy)
    cpu_s = sum(cell.cpu_s for cell in cells)
    print(f"\n{text}\n\n{len(cells)} runs, {cpu_s:.0f} s of CPU, {time.monotonic() - began_s:.0f} s")
    if args.write:
        PAGE.write_text(_page(text, len(cells), cpu_s))
    if args.show:
        print(*(f"\n{row.name} seed {c.seed}: {_said(row, c)}" for row, of in of_rows for c in of), sep="")
    wrong = bad(of_rows, of_healthy)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--healthy-seeds", type=int, default=50)
    parser.add_argument("--rows", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=None, metavar="DIR")
    parser.add_argument("--show", action="store_true", help="print what the check said in each cell")
    parser.add_argument("--write", action="store_true", help="write docs/verdict-matrix.md")
    return parser.parse_args()


def _run_all(jobs: list[Job], processes: int) -> Iterable[Cell]:
    """Each process is warm after its first cell: most of a cold one's time goes into imports."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for cell in pool.map(_run_job, jobs):
            failed = f" ({', '.join(cell.failed or cell.unsure)})" if cell.status != "pass" else ""
            print(f"{cell.row:44} seed {cell.seed:<3} {cell.status}{failed}", flush=True)
            yield cell


def _run_job(job: Job) -> Cell:
    return run_cell(*job)


def _said(row: Row, cell: Cell) -> str:
    said = cell.of(row.check, row.words)
    return f"{said.judged}: {said.text}" if said else f"{row.check} was not asked for"


def _tables(rows: list[tuple[Row, list[Cell]]], healthy: list[tuple[str, list[Cell]]]) -> str:
    parts = ["\n".join([ROW_HEAD, *(row_line(row, cells) for row, cells in rows)])]
    if healthy:
        parts.append("\n".join([HEALTHY_HEAD, *(healthy_line(e, cells) for e, cells in healthy)]))
    return "\n\n".join(parts)


def _page(tables: str, runs: int, cpu_s: float) -> str:
    return f"""# The verdict matrix

<!-- written by `make verdict-matrix`; what it runs stands in tests/matrix/matrix_rows.py -->

Does the harness find what is wrong, by the check that promises it, and nothing where nothing is? Each row plants one
bug into the fakes (`fakes/config.py`, `planted_bugs:` of an experiment's world), or breaks a premise of the run, and
runs it in virtual time over several seeds; the healthy worlds run over more. A cell is *right* when the check that
promises what was broken failed, and named the cause. *Also failed* are other checks that saw the consequences.

{tables}

{runs} runs, {cpu_s:.0f} seconds of CPU. Again, with the same history in every cell: `make verdict-matrix`; one row,
with the folders of its runs: `python tests/matrix/verdict_matrix.py --rows NAME --keep DIR`.
"""


if __name__ == "__main__":
    sys.exit(main())
