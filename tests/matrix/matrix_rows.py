"""What a row of the matrix is, and all of them.

A row names the experiment that exercises what is wrong, the check that promises what is broken, and words that its
sentence or story must have: the sub-cause, not only the check. The rows themselves stand in ``matrix_bugs.py`` (bugs
that are planted into the fakes) and ``matrix_files.py`` (experiments that are wrong themselves).
"""

from __future__ import annotations

from matrix_bugs import BUGS
from matrix_files import FILES
from matrix_row import ALL_CHECKS, Row

ROWS: tuple[Row, ...] = (*BUGS, *FILES)
HEALTHY = {
    ALL_CHECKS: 50,
    "experiments/matrix/back-to-the-floor.yaml": 5,
    "experiments/matrix/scaled-away-with-work.yaml": 5,
    "experiments/matrix/left-alone.yaml": 5,
    "experiments/matrix/each-its-own-promise.yaml": 5,
}
"""Worlds without any bug, each with how many seeds: each must pass, or say why it cannot be judged."""
