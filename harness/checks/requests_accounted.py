"""Every planned request has one row and one known outcome: planned is the sum of the outcomes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from harness.checks.rows import rows_of
from harness.checks.units import count
from harness.history.tables import Outcome
from harness.verdict import Evidence, Finding, Role, Status

if TYPE_CHECKING:
    from harness.history.reader import History


def requests_accounted(history: History) -> Finding:
    """UNKNOWN when nothing was planned."""
    table = rows_of(history)
    planned = history.run.planned
    outcomes = Counter(str(outcome) for outcome in table.texts("outcome"))
    strange = table.where(~table.among("outcome", {str(outcome) for outcome in Outcome}))
    ids, attempts = table.numbers("request_id"), table.numbers("attempt")
    order = np.lexsort((attempts, ids))
    again = (np.diff(ids[order]) == 0) & (np.diff(attempts[order]) == 0)
    twice = np.unique(ids[order][1:][again]).astype(int).tolist()
    first_attempts = len(np.unique(ids))
    endless = table.where(table.sent & np.isnan(table.numbers("end_ns")))
    repeated_ends = history.run.duplicate_ends
    wrong = [
        text
        for applies, text in (
            (first_attempts != planned, f"{planned} were planned, but {first_attempts} have a row"),
            (bool(strange), f"{count(len(strange), 'row')} with an outcome nobody knows"),
            (bool(twice), f"{count(len(twice), 'request')} with more than one row"),
            (bool(endless), f"{count(len(endless), 'sent request')} without a recorded end"),
            (repeated_ends > 0, f"{count(repeated_ends, 'end')} recorded for requests that had ended before"),
        )
        if applies
    ]
    evidence = (
        *(Evidence(row.ref, row.intended_ns, f"outcome {row.outcome!r} is not known") for row in strange),
        *(Evidence(row.ref, row.sent_ns, "was sent, and its end was not recorded") for row in endless),
        *(Evidence(f"requests:{request_id}", None, "has more than one row") for request_id in twice),
    )
    numbers = {"planned": planned, "rows": len(table), **{f"outcome_{name}": n for name, n in sorted(outcomes.items())}}
    if not planned and not table:
        status, sentence = Status.UNKNOWN, "no request was planned, so there is nothing to account for"
    elif wrong:
        status, sentence = Status.FAIL, "; ".join(wrong)
    else:
        table_text = " + ".join(f"{n} {name}" for name, n in outcomes.most_common())
        status, sentence = Status.PASS, f"{planned} planned = {table_text}"
    return Finding("requests_accounted", Role.VALIDITY, status, sentence, len(table), dict(numbers), evidence)
