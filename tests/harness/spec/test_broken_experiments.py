"""Each way in which people get an experiment wrong has one clear answer: file, line, key, and what would be right."""

from __future__ import annotations

# ruff: noqa: E501 (one mistake to a line, as a table)
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.errors import BadInput
from harness.spec.experiment import load_experiment

GOOD = """\
title: A spot interruption during a burst
description: One node goes.
configuration:
  replicas: 4
controls:
  - name: gpu-harness
    provider: {type: python, module: harness.run.chaos.control}
steady-state-hypothesis:
  title: all replicas are Ready
  probes:
    - type: probe
      name: replicas
      tolerance: {type: range, range: [4, 7]}
      provider: {type: python, module: harness.run.chaos.probes, func: replicas_ready}
method:
  - type: action
    name: a gang arrives
    provider: {type: python, module: harness.run.chaos.actions, func: apply_objects, arguments: {after_s: 300, manifest: gang.yaml}}
  - type: action
    name: interrupt
    provider:
      type: python
      module: harness.run.chaos.actions
      func: spot_interruption
      arguments:
        after_s: 320
        nodes: {selector: karpenter.sh/capacity-type=spot, count: 1}
        notice_s: 120
rollbacks:
  - {type: action, name: heal, provider: {type: python, module: harness.run.chaos.actions, func: heal}}
extensions:
  - name: gpu-harness
    time_scale: 15
    workload: {namespace: inference, selector: app=llm, service: llm, url: auto, model: llama-8b}
    load: load.yaml
    manifests: [llm.yaml]
    world:
      preset: quick
      pools:
        - {name: spot, capacity_type: spot, gpus: 4, nodes: 1, stock: 1}
        - {name: on-demand, capacity_type: on-demand, gpus: 4, nodes: 1, stock: 6}
      planted_bugs: []
    phases: {warm_up_s: 60, recovery_s: 160}
    checks:
      - slo: {ttft_ms_p95: 3000, good_ratio_min: 0.95, phase: fault}
      - scale_up: {ready_s_max: 300}
      - graceful_drain: {streams_lost_max: 0}
      - pdb: {}
      - gang: {atomicity_s_max: 60}
"""
OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: inference}\n"

GANG = "func: apply_objects, arguments: {after_s: 300, manifest: gang.yaml}"
HOLD = "func: pause_load, arguments: {after_s: 300, hold_s: 60}"


@dataclass(frozen=True)
class Mistake:
    """``old`` becomes ``new``; the answer must name the line on which ``line_of`` stands, the key, and these words."""

    id: str
    old: str
    new: str
    line_of: str
    key: str | None
    says: str
    hint: str = ""


METHOD, EXT = "method.1.provider.arguments", "extensions.0"
MISTAKES = [
    # Keys.
    Mistake("rollback", "rollbacks:", "rollback:", "rollback:", "rollback", "is not known", "did you mean 'rollbacks'"),
    Mistake("steady-state", "steady-state-hypothesis:", "steady-state-hypotesis:", "hypotesis:", "steady-state-hypotesis",
            "is not known", "did you mean 'steady-state-hypothesis'"),
    Mistake("no-title", "title: A spot", "titel: A spot", "titel:", "titel", "is not known", "did you mean 'title'"),
    Mistake("argument", "        notice_s: 120", "        notice: 120", "notice: 120", f"{METHOD}.notice", "not known", "'notice_s'"),
    Mistake("missing-argument", "        notice_s: 120\n", "", "arguments:\n", f"{METHOD}.notice_s", "'notice_s' is missing", "add it"),
    Mistake("time-scale", "time_scale: 15", "timescale: 15", "timescale", f"{EXT}.timescale", "not known", "'time_scale'"),
    Mistake("workload", "service: llm,", "svc: llm,", "svc:", f"{EXT}.workload.svc", "not known", "known: api, api_key_env"),
    Mistake("pool", "stock: 6", "stok: 6", "stok: 6", f"{EXT}.world.pools.1.stok", "not known", "'stock'"),
    Mistake("dry", "title: A spot", "dry: activities\ntitle: A spot", "dry:", "dry", "inject for real"),
    Mistake("written-twice", "    time_scale: 15", "    time_scale: 15\n    time_scale: 10", "time_scale: 10", f"{EXT}.time_scale",
            "written twice; the first one stands on line 33"),
    Mistake("yaml-on", "configuration:", "on: true\nconfiguration:", "on: true", "on", "is not text", 'put it in quotes: "on":'),
    # Words.
    Mistake("action", "func: spot_interruption", "func: spot_interuption", "func: spot", "method.1.provider.func",
            "has no action 'spot_interuption'", "did you mean 'spot_interruption'? known: "),
    Mistake("probe", "func: replicas_ready", "func: ready", "func: ready", "steady-state-hypothesis.probes.0.provider.func",
            "has no probe 'ready'", "known: pods_pending, replicas_ready, workload_steady"),
    Mistake("module", "chaos.actions\n      func: spot", "chaos.action\n      func: spot", "chaos.action\n",
            "method.1.provider.module", "there is no module", "did you mean 'harness.run.chaos.actions'"),
    Mistake("not-a-module", "harness.run.chaos.actions\n      func: spot", "my actions.py\n      func: spot", "my actions",
            "method.1.provider.module", "not the dotted name", "chaosk8s"),
    Mistake("provider", "      type: python\n", "      type: pyhton\n", "pyhton", "method.1.provider.type",
            '"pyhton" is not one of', "did you mean 'python'? known: http, process, python"),
    Mistake("activity-type", "type: action\n    name: interrupt", "type: actoin\n    name: interrupt", "type: actoin",
            "method.1.type", '"actoin" is not one of', "'action'"),
    Mistake("probe-as-action", "- type: probe\n", "- type: action\n", "- type: action\n      name: replicas",
            "steady-state-hypothesis.probes.0.type", '"action" is not one of', "probe"),
    Mistake("check", "- scale_up:", "- scaleup:", "- scaleup:", f"{EXT}.checks.1.scaleup", "no check 'scaleup'", "'scale_up'"),
    Mistake("check-text", "- pdb: {}", "- pdb", "- pdb\n", f"{EXT}.checks.3", "is a text", "write `- pdb: {}`"),
    Mistake("check-twice", "- pdb: {}", "- pdb: {}\n      - pdb: {}", "- pdb: {}\n      - gang", f"{EXT}.checks.4.pdb", "asked for twice"),
    Mistake("two-checks-in-one", "- pdb: {}\n      - gang:", "- pdb: {}\n        gang:", "- pdb: {}", f"{EXT}.checks.3",
            "a mapping of 2 keys", "one check per '-'"),
    Mistake("quantile", "ttft_ms_p95", "ttft_ms_p96", "ttft_ms_p96", f"{EXT}.checks.0.slo.ttft_ms_p96", "not known", "known quantiles: p50"),
    Mistake("latency", "ttft_ms_p95", "tfft_ms_p95", "tfft_ms_p95", f"{EXT}.checks.0.slo.tfft_ms_p95", "not known", "'ttft_ms_p95'"),
    Mistake("phase", "phase: fault", "phase: faults", "phase: faults", f"{EXT}.checks.0.slo.phase", "not one of", "'fault'"),
    Mistake("no-limit", "{ttft_ms_p95: 3000, good_ratio_min: 0.95, phase: fault}", "{phase: fault}", "- slo",
            f"{EXT}.checks.0.slo", "sets no limit", "at least one"),
    Mistake("preset", "preset: quick", "preset: qick", "preset: qick", f"{EXT}.world.preset", "not one of", "'quick'"),
    Mistake("bug", "planted_bugs: []", "planted_bugs: [drain_ignore_pdb]", "planted_bugs", f"{EXT}.world.planted_bugs.0",
            "not one of", "'drain_ignores_pdb'"),
    Mistake("capacity", "capacity_type: on-demand", "capacity_type: ondemand", "ondemand", f"{EXT}.world.pools.1.capacity_type",
            "not one of", "'on-demand'"),
    Mistake("strategy", "title: A spot", "runtime: {rollbacks: {strategy: never}}\ntitle: A spot", "runtime",
            "runtime.rollbacks.strategy", '"never" is not one of', "always"),
    # Units and numbers.
    Mistake("minutes", "        notice_s: 120", "        notice_s: 2m", "notice_s: 2m", f"{METHOD}.notice_s",
            '"2m", but must be a number of seconds', "write notice_s: 120"),
    Mistake("seconds", "after_s: 320", "after_s: 320s", "after_s: 320s", f"{METHOD}.after_s", "a number of seconds", "write after_s: 320"),
    Mistake("quoted", "after_s: 320", 'after_s: "320"', '"320"', f"{METHOD}.after_s", "a number", "without quotes: after_s: 320"),
    Mistake("millis-in-seconds", "ready_s_max: 300", "ready_s_max: 300000ms", "ready_s", f"{EXT}.checks.1.scale_up.ready_s_max",
            "a number of seconds", "write ready_s_max: 300"),
    Mistake("limit-unit", "ttft_ms_p95: 3000", "ttft_ms_p95: 3s", "- slo", f"{EXT}.checks.0.slo.ttft_ms_p95", "milliseconds", "only the number"),
    Mistake("percent", "good_ratio_min: 0.95", "good_ratio_min: 95%", "- slo", f"{EXT}.checks.0.slo.good_ratio_min", '"95%"', "0.95"),
    Mistake("ratio", "good_ratio_min: 0.95", "good_ratio_min: 95", "- slo", f"{EXT}.checks.0.slo.good_ratio_min", "at most 1"),
    Mistake("negative", "after_s: 320", "after_s: -5", "after_s: -5", f"{METHOD}.after_s", "is -5, but must be at least 0"),
    Mistake("less-than-none", "        notice_s: 120", "        notice_s: -1", "notice_s: -1", f"{METHOD}.notice_s", "at least 0"),
    Mistake("no-node", "count: 1", "count: 0", "count: 0", f"{METHOD}.nodes.count", "at least 1"),
    Mistake("half-a-node", "count: 1", "count: 1.5", "count: 1.5", f"{METHOD}.nodes.count", "whole number"),
    Mistake("true-for-number", "count: 1", "count: true", "count: true", f"{METHOD}.nodes.count", "is true, but must be a whole number"),
    Mistake("infinite", "warm_up_s: 60", "warm_up_s: .inf", "warm_up_s", f"{EXT}.phases.warm_up_s", "a number of seconds"),
    Mistake("zero-scale", "time_scale: 15", "time_scale: 0", "time_scale: 0", f"{EXT}.time_scale", "more than 0"),
    Mistake("stock", "nodes: 1, stock: 6", "nodes: 7, stock: 6", "nodes: 7", f"{EXT}.world.pools.1.nodes", "its stock is 6", "included"),
    # Shapes and values.
    Mistake("method-mapping", "rollbacks:\n  - {type", "rollbacks:\n  {type", "rollbacks", "rollbacks", "a mapping, but must be a list"),
    Mistake("empty-title", "title: A spot interruption during a burst", 'title: ""', "title:", "title", "a text that is not empty"),
    Mistake("selector", "capacity-type=spot, count", "capacity-type is spot, count", "selector:", f"{METHOD}.nodes.selector",
            "is not a label requirement", "key=value"),
    Mistake("url", "url: auto", "url: localhost", "url:", f"{EXT}.workload.url", "not a service URL", "http://host:port"),
    Mistake("password", "url: auto", "url: http://me:it@gw", "url:", f"{EXT}.workload.url", "a password in", "api_key_env"),
    Mistake("two-pools", "name: on-demand,", "name: spot,", "capacity_type: on-demand", f"{EXT}.world.pools.1.name", "two pools"),
    Mistake("no-check", "    checks:\n", "    checks: []\n    x:\n", "checks: []", f"{EXT}.checks", "has 0 items"),
    # How Chaos Toolkit would misread it.
    Mistake("variable", "after_s: 320", 'after_s: "${aftr}"', "${aftr}", f"{METHOD}.after_s", "${aftr} is not defined", "known: replicas"),
    Mistake("variable-near", "name: interrupt\n", 'name: "interrupt ${replica}"\n', "${replica}", "method.1.name", "not defined",
            "did you mean 'replicas'"),
    Mistake("not-a-variable", "name: interrupt\n", 'name: "interrupt ${my-var}"\n', "my-var", "method.1.name", "is not a variable"),
    Mistake("variable-in-ours", "load: load.yaml", 'load: "${replicas}.yaml"', "${replicas}", f"{EXT}.load", "not replaced in the extension"),
    Mistake("pauses", "name: interrupt\n", "name: interrupt\n    pauses: {after: 10}\n", "pauses", "method.1.pauses",
            "clock seconds, but time_scale is 15", "after_s"),
    Mistake("tolerance-in-method", "name: interrupt\n", "name: interrupt\n    tolerance: true\n", "tolerance: true",
            "method.1.tolerance", "is refused: only probes"),
    Mistake("no-tolerance", "      tolerance: {type: range, range: [4, 7]}\n", "", "- type: probe",
            "steady-state-hypothesis.probes.0.tolerance", "'tolerance' is missing"),
    Mistake("fraction", "{type: range, range: [4, 7]}", "0.5", "tolerance", "steady-state-hypothesis.probes.0.tolerance",
            "lone fraction", "range: [0.5, 0.5]"),
    Mistake("range-down", "range: [4, 7]", "range: [7, 4]", "tolerance", "steady-state-hypothesis.probes.0.tolerance.range", "never be met"),
    Mistake("text-range", "{type: range, range: [4, 7]}", "[a, b]", "tolerance", "steady-state-hypothesis.probes.0.tolerance",
            "two items are a range", "regex"),
    Mistake("regex", "{type: range, range: [4, 7]}", "{type: regex, pattern: '(a'}", "tolerance",
            "steady-state-hypothesis.probes.0.tolerance.pattern", "not a regular expression"),
    Mistake("tolerance-type", "type: range", "type: rnge", "tolerance", "steady-state-hypothesis.probes.0.tolerance.type", "rnge", "'range'"),
    Mistake("timeout", "      func: spot_interruption\n", "      func: spot_interruption\n      timeout: 5\n", "timeout: 5",
            "method.1.provider.timeout", "keeps it only for process and http"),
    Mistake("control", "chaos.control}", "chaos.controls}", "chaos.controls", "controls.0.provider.module", "there is no control", "chaos.control"),
    Mistake("no-control", "controls:\n  - name: gpu-harness\n    provider: {type: python, module: harness.run.chaos.control}\n", "",
            "title: A spot", "controls", "is not listed", "module: harness.run.chaos.control"),
    Mistake("control-scope", "chaos.control}", "chaos.control}\n    scope: before", "scope: before", "controls.0.scope", "must see the whole run"),
    Mistake("extension", "- name: gpu-harness\n    time", "- name: gpu_harness\n    time", "gpu_harness", "extensions.0.name",
            "no extension is named 'gpu-harness'"),
    Mistake("order", "after_s: 320", "after_s: 200", "after_s: 200", f"{METHOD}.after_s", "before the activity above it (300 s)", "order of time"),
    Mistake("waited-for", GANG, HOLD, "after_s: 320", f"{METHOD}.after_s", "waits for 'a gang arrives', which is over at 360 s",
            "`background: true`"),
    Mistake("fault-as-rollback", "func: heal}}", "func: pause_load, arguments: {after_s: 1, hold_s: 1}}}", "name: heal",
            "rollbacks.0.provider.func", "is no rollback"),
    Mistake("ref", "  - type: action\n    name: interrupt", "  - ref: replcas\n  - type: action\n    name: interrupt", "ref:",
            "method.1.ref", "no activity is named", "'replicas'"),
    Mistake("ref-to-ours", "rollbacks:\n", "rollbacks:\n  - ref: interrupt\n", "ref:", "rollbacks.0.ref", "cannot be repeated"),
    Mistake("program", "name: heal, provider: {type: python, module: harness.run.chaos.actions, func: heal}",
            "name: heal, provider: {type: process, path: no-such-program}", "name: heal", "rollbacks.0.provider.path", "no program"),
    # Files.
    Mistake("no-profile", "load: load.yaml", "load: laod.yaml", "load: laod", f"{EXT}.load", 'no file "laod.yaml"', "'load.yaml'"),
    Mistake("no-manifest", "manifests: [llm.yaml]", "manifests: [nothing/x.yaml]", "manifests", f"{EXT}.manifests.0", "no file"),
    Mistake("no-gang", "manifest: gang.yaml", "manifest: gnag.yaml", "gnag", "method.0.provider.arguments.manifest", "no file", "'gang.yaml'"),
    Mistake("not-yaml", "configuration:\n", "configuration: {\n", "controls:", None, "is not YAML"),
    Mistake("tab", "  replicas: 4", "\treplicas: 4", "\treplicas", None, "is not YAML", "spaces"),
    Mistake("two-documents", "method:\n", "---\nmethod:\n", "method:", None, "holds 2 documents", "split"),
]  # fmt: skip


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str, name: str = "experiment.yaml") -> Path:
        for manifest in ("llm.yaml", "gang.yaml"):
            (tmp_path / manifest).write_text(OBJECT)
        (tmp_path / "load.yaml").write_text("title: x\n")
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_nothing_waits_for_an_action_in_the_background(write: Callable[[str], Path]) -> None:
    text = GOOD.replace(GANG, HOLD).replace("name: a gang arrives\n", "name: a gang arrives\n    background: true\n")
    assert [action.fault.starts_s for action in load_experiment(write(text)).actions] == [300, 320]


def test_the_unbroken_one_is_good(write: Callable[[str], Path]) -> None:
    assert load_experiment(write(GOOD)).title == "A spot interruption during a burst"


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.id)
def test_one_clear_answer(mistake: Mistake, write: Callable[[str], Path]) -> None:
    assert mistake.old in GOOD, "the table no longer fits the good experiment"
    text = GOOD.replace(mistake.old, mistake.new, 1)
    path = write(text)
    with pytest.raises(BadInput) as caught:
        load_experiment(path, environ={})
    where = caught.value.where
    assert where is not None
    assert where.file == str(path)
    assert where.key == mistake.key
    assert where.line == text[: text.index(mistake.line_of)].count("\n") + 1
    assert mistake.says in caught.value.message
    assert mistake.hint in (caught.value.hint or "")


def test_a_world_without_a_gpu_is_refused_and_one_with_a_pool_without_is_not(write: Callable[[str], Path]) -> None:
    assert GOOD.count("gpus: 4") == 2
    pools = load_experiment(write(GOOD.replace("gpus: 4", "gpus: 0", 1))).settings.world
    assert pools is not None and [pool.gpus for pool in pools.pools] == [0, 4]
    with pytest.raises(BadInput, match="no pool has a GPU") as caught:
        load_experiment(write(GOOD.replace("gpus: 4", "gpus: 0")))
    assert caught.value.where is not None and (caught.value.where.key or "").endswith("pools")


def test_the_table_is_long_enough() -> None:
    assert len({m.id for m in MISTAKES}) == len(MISTAKES) >= 60
