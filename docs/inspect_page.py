"""The page docs/inspect.md: how to inspect, and every rule with its incident. Part of ``generate.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fakes.kube.schema.raw import raw_types
from harness.inspection.crds.shapes import known_shapes
from harness.inspection.registry import RULES
from harness.inspection.rule import Rule

_HOW = """```
gpu-harness inspect deploy/                     # files, folders, - for standard input; no cluster
gpu-harness inspect --experiment experiments/spot-interruption-during-burst.yaml
gpu-harness inspect --kubeconfig ~/.kube/config --context prod [--namespace inference]
helm template chart | gpu-harness inspect - --longest-stream-s 120 --junit inspect.xml
```"""

_INTRO = (
    "`gpu-harness inspect` looks for problems that can be seen before anything runs: in manifests, "
    "for a pipeline without a cluster, or in a cluster that is there, by reading alone. It tells "
    "what is there first (autoscalers, gangs and queues, budgets, devices, gateways, versions), then "
    "each problem with its place, what would be right, what to do, and the incident in which it was "
    "learnt. It is the first thing to run against a cluster of one's own, before `run --target "
    "kubeconfig`.",
)  # fmt: skip

_USE = (
    "## What it is told",
    "Two things stand in no object. **The longest stream** is taken from `--longest-stream-s`, from "
    "the load profile of `--experiment`, or from the annotation `gpu-harness.dev/longest-stream-s` "
    "of a workload (or its pod template), which goes first; where nobody says it, the rule on it is "
    "told as not judged, and a grace that nobody wrote is a warning. **The load of the model** "
    "(container start to first answer) is 60 s, the least that any takes, unless `--model-load-s` or "
    "the annotation `gpu-harness.dev/model-load-s` says more. Both are seconds (`\"90\"`) or durations (`1m30s`); one "
    "that is neither is itself an error.",
    "A model server is a workload that asks for GPUs, runs until somebody ends it, and serves: it "
    "names a port, has a readinessProbe, or is selected by a Service or an InferencePool. Manifests "
    "may lie in many folders, so nothing is said of what is not there (a budget, a target), except "
    "in a cluster. Where several files have one object, each is judged, together with those of its "
    "own file. An object without a namespace goes where the others of its file go, if they name one and the same.",
    "Pods are known of Deployment, StatefulSet, ReplicaSet, DaemonSet, Job, CronJob, Pod, and of LeaderWorkerSet, "
    "JobSet, RayCluster, RayService, RayJob, Volcano's Job, ScaledJob and Argo's Rollout, each with the labels that "
    "its controller adds. Another kind that asks for GPUs somewhere (KServe's InferenceService, CloneSet) is named, "
    "the rules on servers are told as not judged, and nothing found is then exit code 2, not 0.",
    "Fields are known, as of Kubernetes 1.37, of every pod template and of ",
    "They are known of CRDs among the manifests, too, and of ",
    "In a cluster the API server has dropped wrong keys already; they are looked for in what "
    "`kubectl apply` kept (`last-applied-configuration`).",
    "Templates of Helm and folders of Kustomize are refused with the command that renders them; a "
    "file may have 8 MiB, and 100,000 values with all aliases written out.",
    "## Accepting a problem",
    "At the object: one line for each rule, and why. It is listed as accepted, and no fail.",
    "```yaml\nmetadata:\n  annotations:\n    gpu-harness.dev/accept: |\n      no-prestop: the gateway "
    "waits ten seconds itself\n```",
    "Or in a file, `--accept FILE`, as `experiments/accept/manifests.yaml`. An entry without a "
    "reason, or for a rule that is none, is itself an error; one that accepts nothing any more is "
    "told.",
    "```yaml\naccept:\n  - rule: pdb-blocks-every-drain\n    object: PodDisruptionBudget/inference/*   "
    "# Kind/namespace/name, with *; left out: all\n    reason: nodes are drained by hand, at night\n```",
    "## What it answers",
    "| exit code | |\n|---|---|\n| 0 | nothing found, or all of it accepted |\n| 1 | at least one "
    "problem (from `--fail-on` on: `warning`, the default, or `error`) |\n| 2 | nothing found, but a "
    "kind could not be read, or pods with GPUs are described by a kind that is not known "
    "|\n| 64 | something that is no manifest, an accept file with a mistake, "
    "or flags that do not go together |\n| 70 | the cluster does not answer |",
    "`--output json` has inventory, findings (accepted ones too), and which rules were judged and "
    "which not, and why. `--junit FILE` has a test case for each rule: a failure with all its "
    "places, or skipped where it was not judged.",
    "## What it may do in a cluster",
    "`gpu-harness rbac --inspect [--namespace NS]` prints a service account with a role that lists "
    "the kinds which are looked at, and can do nothing else: no secrets, no writing. A kind that may "
    "not be read is named, and no rule that looks at it is judged.",
    "## Tried",
    "`tests/harness/inspection/planted` has a problem for each rule that looks at manifests, in a "
    "namespace of its own; `tests/harness/inspection/clean` has a workload, groups, KEDA and pools as "
    "they should be. From the command line, and in the tests:",
    "```\ngpu-harness inspect tests/harness/inspection/planted   # exit code 1: 28 errors, 10 warnings in 62 "
    "objects\ngpu-harness inspect tests/harness/inspection/clean     # exit code 0: no problem in 11 "
    "objects, by 38 rules\n```",
    "Each of the 38 is found once, in its own file, and nothing else is. The first of them also has a "
    "rule that is not judged, for nobody says how long the longest stream is.",
    "## The rules",
)  # fmt: skip


_NO_KINDS = ("Review", "TemplateSpec", "VolumeClaimTemplate", "Eviction", "Binding", "Scale")
"""Requests, and parts of kinds."""


def _own_kinds() -> Iterable[str]:
    """Kubernetes' own kinds that people write: those with an object's metadata."""
    for name, type_ in raw_types().items():
        fields = {field["name"]: field["type"] for field in type_.get("fields", ())}
        if fields.get("metadata") == "meta/v1.ObjectMeta" and not name.endswith(_NO_KINDS):
            yield name.rpartition(".")[2]


def parts(written: str, table: Callable[[Sequence[str], Iterable[Sequence[str]]], str]) -> list[str]:
    """The parts of the page."""
    kinds = sorted({f"{key.rpartition('.')[2]} ({key.rpartition('.')[0]})" for key in known_shapes()})
    lists = iter((", ".join(sorted(set(_own_kinds()))), ", ".join(kinds)))
    use = [f"{part}{next(lists)}." if part.endswith("and of ") else part for part in _USE]
    rules = RULES.values()
    rows = [(f"[{rule.id}](#{rule.id})", rule.severity.value, rule.sentence) for rule in rules]
    return [
        "# Inspecting a cluster, or its manifests", written, *_INTRO, _HOW, *use,
        table(("rule", "severity", "the problem"), rows), *(part for rule in rules for part in _rule(rule)),
    ]  # fmt: skip


def _rule(rule: Rule) -> list[str]:
    only = " Only in a cluster." if rule.live_only else ""
    return [
        f"### {rule.id}",
        f"{rule.sentence} ({rule.severity.value}; looks at {', '.join(rule.looks_at)}.{only})",
        f"- right: {rule.right}\n- do: {rule.todo}\n- seen: {rule.incident}\n- source: {rule.source}",
    ]
