"""Tables of numbers within written files: what is no row of them, and what does not rise."""

from __future__ import annotations

from collections.abc import Sequence

from harness.spec.model import mistake

_WORDS = {2: "a pair of numbers", 3: "three numbers"}


def number_lists(rows: object, width: int, hint: str) -> object:
    """The rows as they are; the first one that is not ``width`` numbers is named."""
    for index, row in enumerate(rows if isinstance(rows, list) else ()):
        numbers = isinstance(row, list) and all(type(x) in (int, float) for x in row)
        if not numbers or len(row) != width:
            raise mistake(f"is not {_WORDS[width]}", key=(index,), hint=hint)
    return rows


def check_rising(points: Sequence[tuple[float, float]], key: str, what: str, *, least: float) -> None:
    """A table of quantiles: from 0 to 1, rising, and its values do not fall below each other or below ``least``."""
    if points[0][0] != 0 or points[-1][0] != 1:
        raise mistake("the table must reach from quantile 0 to 1", key=(key,))
    for index in range(1, len(points)):
        if points[index][0] <= points[index - 1][0]:
            raise mistake("the quantiles must rise", key=(key, index))
        if points[index][1] < points[index - 1][1]:
            raise mistake(f"the {what} must not fall", key=(key, index))
    if points[0][1] < least:
        few = "a request has at least 1 token" if what == "tokens" else f"the {what} must be at least {least:g}"
        raise mistake(few, key=(key, 0))
