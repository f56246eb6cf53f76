"""The page that shows what came of the comparison."""

from __future__ import annotations

from collections.abc import Sequence

from bothsides.judge import Judged

HEAD = """# Behaviour: the embedded control plane beside a real one

Written by `make behaviour ARGS="--recorded --table docs/behaviour.md"`, recordings by `ARGS=--record`; do not edit.

Each scenario is one script, run with the same hollow nodes and the same given metrics against a real kube-apiserver,
kube-scheduler and kube-controller-manager {version} and against the embedded one. What every object of the namespace
said (conditions with reason and message, counts, taints, finalizers, events, answers to requests) is compared field by
field: the same values in the same order, and each at about the same time. Random names, uids and times of day are taken
out first. A count that lasted for less than about a second was on its way to the next one.

*Transitions* are the values compared; the last column is the largest difference in time of any of them, in seconds. The
real side runs on a shared machine in real time, so part of that is the machine's.

What the real side did is kept in `tests/behaviour/recorded/`; `make test` compares the embedded control plane with it
without any programs of Kubernetes.

| scenario | what happens | result | transitions | apart, s |
|---|---|---|---|---|
"""


def page(judged: Sequence[Judged], version: str) -> str:
    rows = [_row(each) for each in judged]
    agreeing = sum(each.comparison.agrees for each in judged)
    total = f"\n{len(judged)} scenarios: {agreeing} agree, {len(judged) - agreeing} differ unexplained.\n"
    return HEAD.format(version=version) + "\n".join(rows) + "\n" + total + _explained(judged)


def unrecorded(names: Sequence[str]) -> str:
    """What the page has to say of scenarios without a recording."""
    if not names:
        return ""
    listed = ", ".join(f"`{name}`" for name in names)
    return f"\n## Not recorded yet\n\nWritten, but without a recording on a quiet machine: {listed}.\n"


def _row(judged: Judged) -> str:
    scenario, found = judged.scenario, judged.comparison
    result = "agrees" if found.agrees else "**differs**"
    if scenario.explained and found.agrees:
        result = "agrees but for what is explained"
    return f"| `{scenario.name}` | {scenario.title} | {result} | {found.transitions} | {found.latest_s:.1f} |"


def _explained(judged: Sequence[Judged]) -> str:
    lines = ["\n## Explained differences\n", "What is not compared in a scenario, and why.\n"]
    reasons: dict[str, list[str]] = {}
    for each in judged:
        for explained in each.scenario.explained:
            reasons.setdefault(explained.reason, []).append(f"`{each.scenario.name}` ({explained.pattern})")
    lines += [f"- {reason[0].upper()}{reason[1:]}: {', '.join(where)}." for reason, where in reasons.items()]
    return "\n".join(lines) + "\n"
