"""The page that shows what came of the comparison."""

from __future__ import annotations

from collections.abc import Sequence

from bothsides.compare import Comparison
from bothsides.judge import Judged

HEAD = """# Behaviour: the embedded control plane beside a real one

Written by `make behaviour ARGS="--recorded --table docs/behaviour.md"`, recordings by `ARGS=--record`; do not edit.

Each scenario is one script, run with the same hollow nodes and the same given metrics against a real kube-apiserver,
kube-scheduler and kube-controller-manager {version} and against the embedded one. What every object of the namespace
said (conditions with reason and message, counts, taints, finalizers, events, answers to requests) is compared field by
field: the same values in the same order, and each at about the same time. Random names, uids and times of day are taken
out first. A count that lasted for less than about a second was on its way to the next one.

The embedded side does the same each time. The real one runs in real time on a shared machine, so each scenario was
recorded several times in a row and every play was kept, whether it agreed or not: *plays* says how many of them agree
in all. A scenario agrees when at least half of its plays do. *Transitions* are the values compared; the last column is
the largest difference in time of any of them in the plays that agree, in seconds.

What the real side did is kept in `tests/behaviour/recorded/`; `make test` compares the embedded control plane with it
without any programs of Kubernetes.

| scenario | what happens | result | plays | transitions | apart, s |
|---|---|---|---|---|---|
"""


def page(judged: Sequence[Judged], version: str) -> str:
    rows = [row(each) for each in judged]
    agreeing = sum(each.agrees for each in judged)
    plays, agreed = sum(len(each.plays) for each in judged), sum(len(each.agreeing) for each in judged)
    total = (
        f"\n{len(judged)} scenarios: {agreeing} agree, {len(judged) - agreeing} differ unexplained. "
        f"{agreed} of {plays} plays agree.\n"
    )
    return HEAD.format(version=version) + "\n".join(rows) + "\n" + total + _explained(judged) + _differing(judged)


def unrecorded(names: Sequence[str]) -> str:
    """What the page has to say of scenarios without a recording."""
    if not names:
        return ""
    listed = ", ".join(f"`{name}`" for name in names)
    return f"\n## Not recorded yet\n\nWritten, but without a recording on a quiet machine: {listed}.\n"


def row(judged: Judged) -> str:
    scenario, found = judged.scenario, judged.shown
    result = "agrees" if judged.agrees else "**differs**"
    if scenario.explained and judged.agrees:
        result = "agrees but for what is explained"
    plays = f"{len(judged.agreeing)} of {len(judged.plays)}"
    apart_s = max((c.latest_s for c in judged.agreeing), default=found.latest_s)
    return f"| `{scenario.name}` | {scenario.title} | {result} | {plays} | {found.transitions} | {apart_s:.1f} |"


def _differing(judged: Sequence[Judged]) -> str:
    """What was other in the plays that do not agree: the first difference of each."""
    lines = [f"- `{each.scenario.name}`: {_first_line(c)}" for each in judged for c in each.comparisons if not c.agrees]
    if not lines:
        return ""
    return "\n## Plays that differ\n\nThe first difference of each.\n\n" + "\n".join(lines) + "\n"


def _first_line(found: Comparison) -> str:
    more = f" (and {len(found.differences) - 1} more)" if len(found.differences) > 1 else ""
    return " ".join(found.differences[0].split()) + more


def _explained(judged: Sequence[Judged]) -> str:
    lines = ["\n## Explained differences\n", "What is not compared in a scenario, and why.\n"]
    reasons: dict[str, list[str]] = {}
    for each in judged:
        for explained in each.scenario.explained:
            reasons.setdefault(explained.reason, []).append(f"`{each.scenario.name}` ({explained.pattern})")
    lines += [f"- {reason[0].upper()}{reason[1:]}: {', '.join(where)}." for reason, where in reasons.items()]
    return "\n".join(lines) + "\n"
