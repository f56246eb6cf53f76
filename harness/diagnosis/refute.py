"""By which recorded facts a suspect is out of the question, or one of the fails is none of its doing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from harness.diagnosis.case import Case
from harness.diagnosis.lateness import not_good
from harness.diagnosis.suspect import Suspect

Rule = Callable[[Case, Suspect, Sequence[Suspect]], str | None]


def accounts_for_no_request(_: Case, suspect: Suspect, others: Sequence[Suspect]) -> str | None:
    """All that it is said to have lost is accounted for by another, who accounts for more."""
    if not suspect.requests:
        return None
    wider = (other for other in others if suspect.requests < other.requests)
    return next((f"its requests are accounted for by {other.component}" for other in wider), None)


RULES: dict[str, Rule] = {"accounts_for_no_request": accounts_for_no_request}


def refuted(case: Case, suspect: Suspect, others: Sequence[Suspect]) -> str | None:
    """Why it cannot be; None where nothing speaks against it."""
    return next((why for rule in RULES.values() if (why := rule(case, suspect, others)) is not None), None)


def narrowed(case: Case, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Each without ``slo`` where most of the requests that failed it were over before the suspect did anything wrong:
    no effect comes before its cause."""
    if "slo" not in case.failed:
        return list(suspects)
    end = case.rows.numbers("end_ns")[not_good(case)]

    def late_for(suspect: Suspect) -> bool:
        return int((end < suspect.since_ns).sum()) > len(end) / 2

    return [replace(s, breaks=s.breaks - {"slo"}) if late_for(s) else s for s in suspects]
