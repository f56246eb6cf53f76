"""What came of each cell, and the table of it."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Sequence

from matrix_cells import Cell
from matrix_row import Row


class Came(enum.StrEnum):
    """Of a cell with something wrong in it, or of a healthy one."""

    RIGHT = "right check"
    OTHER = "another"
    MISSED = "missed"
    UNJUDGED = "unknown"
    PASSED = "passed"
    FALSE_ALARM = "false alarm"
    CRASHED = "crashed"


def came_of(row: Row, cell: Cell) -> Came:
    """A run that must be unknown and fails is a false alarm, and so is a check that fails though its promise was kept:
    what they accuse is not to blame."""
    if cell.status.startswith("crashed"):
        return Came.CRASHED
    said = cell.of(row.check, row.words)
    named = said is not None and all(word in said.text for word in row.words)
    if row.status == "unknown":
        if cell.status == "fail":
            return Came.FALSE_ALARM
        if cell.status == "pass":
            return Came.MISSED
        return Came.RIGHT if said is not None and named and said.judged == "unknown" else Came.OTHER
    if cell.status == "pass":
        return Came.MISSED
    if cell.status == "unknown":
        return Came.UNJUDGED
    if set(row.innocent) & set(cell.failed):
        return Came.FALSE_ALARM
    others = [(cell.of(check, [word]), word) for check, word in row.also]
    seen = all(other is not None and other.judged == "fail" and word in other.text for other, word in others)
    return Came.RIGHT if said is not None and said.judged == "fail" and named and seen else Came.OTHER


def came_of_healthy(cell: Cell) -> Came:
    known = {"pass": Came.PASSED, "fail": Came.FALSE_ALARM, "unknown": Came.UNJUDGED}
    return known.get(cell.status, Came.CRASHED)


def row_line(row: Row, cells: Sequence[Cell]) -> str:
    came = Counter(came_of(row, cell) for cell in cells)
    also = Counter(check for cell in cells for check in cell.failed if check != row.check)
    others = ", ".join(f"`{check}` {n}" for check, n in also.most_common()) or "-"
    counts = " | ".join(
        str(came[c] or "-") for c in (Came.RIGHT, Came.OTHER, Came.UNJUDGED, Came.MISSED, Came.FALSE_ALARM)
    )
    wanted = f"`{row.check}`" if row.status == "fail" else f"`{row.check}` (unknown)"
    return f"| `{row.name}` | {row.breaks} | {wanted} | {counts} | {others} |"


ROW_HEAD = (
    "| planted | what it breaks | must be found by | right check | another | unknown | missed | false alarm "
    "| also failed |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)
HEALTHY_HEAD = (
    "| healthy world | runs | passed | unknown | false alarm | said by |\n| --- | --- | --- | --- | --- | --- |"
)


REAL_HEAD = "| row | seed | came to | as expected | seconds |\n| --- | --- | --- | --- | --- |"
CAUSES_HEAD = "| planted | names the cause | what a reader reads first |\n| --- | --- | --- |"
PERTURBED_HEAD = "| row | perturbed histories | turned into their opposite |\n| --- | --- | --- |"


def perturbed_line(name: str, cells: Sequence[Cell]) -> str:
    turned = Counter(f"{what}: `{check}`" for cell in cells for what, check, _ in cell.flips)
    said = ", ".join(f"{text} {n}" for text, n in turned.most_common()) or "-"
    return f"| `{name}` | {sum(cell.perturbed for cell in cells)} | {said} |"


def real_line(row: Row, cell: Cell, took_s: float) -> str:
    came = came_of(row, cell)
    failed = f" ({', '.join(f'`{check}`' for check in cell.failed)})" if cell.failed else ""
    as_expected = "yes" if came is Came.RIGHT else f"no: {came.value}"
    return f"| `{row.name}` | {cell.seed} | {cell.status}{failed} | {as_expected} | {took_s:.0f} |"


def healthy_line(experiment: str, cells: Sequence[Cell]) -> str:
    came = Counter(came_of_healthy(cell) for cell in cells)
    by = Counter(check for cell in cells if cell.status != "pass" for check in (cell.failed or cell.unsure))
    said = ", ".join(f"`{check}` {n}" for check, n in by.most_common()) or "-"
    counts = " | ".join(str(came[c] or "-") for c in (Came.PASSED, Came.UNJUDGED, Came.FALSE_ALARM))
    return f"| `{experiment}` | {len(cells)} | {counts} | {said} |"


def bad(rows: Sequence[tuple[Row, Sequence[Cell]]], healthy: Sequence[tuple[str, Sequence[Cell]]]) -> list[str]:
    """What is not as it must be, a line each."""
    found = [
        f"{row.name} seed {cell.seed}: {came_of(row, cell)} ({', '.join(cell.failed) or cell.status})"
        for row, cells in rows
        for cell in cells
        if came_of(row, cell) is not Came.RIGHT
    ]
    found += [
        f"{cell.row} seed {cell.seed}, {what}: {check} {turned}"
        for cells in [*(cells for _, cells in rows), *(cells for _, cells in healthy)]
        for cell in cells
        for what, check, turned in cell.flips
    ]
    return found + [
        f"{experiment} seed {cell.seed}: {came_of_healthy(cell)} ({', '.join(cell.failed)})"
        for experiment, cells in healthy
        for cell in cells
        if came_of_healthy(cell) not in (Came.PASSED, Came.UNJUDGED)
    ]
