"""Every planned request has one row and one known outcome: planned is the sum of the outcomes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

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
    outcomes = Counter(row.outcome for row in table)
    known = {str(outcome) for outcome in Outcome}
    strange = [row for row in table if row.outcome not in known]
    times = Counter((row.request_id, row.attempt) for row in table)
    twice = sorted({request_id for (request_id, _), n in times.items() if n > 1})
    first_attempts = len({row.request_id for row in table})
    endless = [row for row in table if row.sent_ns is not None and row.end_ns is None]
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
