"""Accepting a problem is a statement of somebody: of which one, and why."""

from __future__ import annotations

from collections.abc import Iterator

from harness.inspection.objects import Objects
from harness.inspection.rule import Rule, Severity, Sighting
from harness.inspection.seen import Seen
from harness.inspection.workloads import LONGEST_STREAM, MODEL_LOAD, RUNS_ON, seconds
from harness.spec.document import did_you_mean
from harness.spec.mistakes import show

ACCEPT = "gpu-harness.dev/accept"
"""Annotation of an object: one line for each rule, ``rule-id: why``."""


def accepted_in(seen: Seen) -> list[tuple[str, str]]:
    """Rule and reason of each line, as written; the reason is empty where none is."""
    lines = [line.partition(":") for line in seen.annotations.get(ACCEPT, "").splitlines() if line.strip()]
    return [(rule.strip(), reason.strip()) for rule, _, reason in lines]


def _bad_accepts(objects: Objects) -> Iterator[Sighting]:
    from harness.inspection.registry import RULES  # the registry holds this rule too

    at = ("metadata", "annotations", ACCEPT)
    for seen in objects.seen:
        for rule, reason in accepted_in(seen):
            if rule not in RULES:
                yield Sighting(seen, at, f'there is no rule "{rule}"', did_you_mean(rule, RULES))
            elif not reason:
                yield Sighting(seen, at, f"{rule} is accepted without a reason", f"{ACCEPT}: '{rule}: why'")


BAD_ACCEPT = Rule(
    "accept-without-ground", Severity.ERROR,
    "Something is accepted that no rule says, or without a reason, so nothing is.",
    "'rule-id: why', one line for each rule",
    "write the reason, or correct the rule's name",
    "Whoever reads it later cannot tell a decision from a slip.",
    "docs/inspect.md", ("every kind",), _bad_accepts,
)  # fmt: skip


def _unreadable(objects: Objects) -> Iterator[Sighting]:
    for workload in objects.workloads:
        for base, said in ((workload.at, workload.annotations), ((), workload.object.annotations)):
            for annotation in (LONGEST_STREAM, MODEL_LOAD):
                if annotation in said and seconds(said[annotation]) is None:
                    yield Sighting(
                        workload.object,
                        (*base, "metadata", "annotations", annotation),
                        f"it is {show(said[annotation])}",
                    )


UNREADABLE_SECONDS = Rule(
    "seconds-without-meaning", Severity.ERROR,
    "An annotation for these rules says no time, so they judge as if it were not there.",
    'a number of seconds in quotes, such as "90", or a duration such as 1m30s',
    "correct the value",
    "A longest stream of `nan` was longer than no grace, and everything passed.",
    "docs/inspect.md", (*RUNS_ON, "Job", "Pod"), _unreadable,
)  # fmt: skip

ACCEPTS = (BAD_ACCEPT, UNREADABLE_SECONDS)
