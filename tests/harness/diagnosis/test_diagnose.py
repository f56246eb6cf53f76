"""Kept histories, told by hand: what broke in each is known, so it is known whom a diagnosis must name."""

from __future__ import annotations

import pytest
from cases import HERE, ask, files, load
from story import Story

from harness.checks.judge import CHECKS, explained
from harness.diagnosis.case import Case
from harness.diagnosis.diagnose import RULES, diagnose
from harness.diagnosis.refute import narrowed, refuted
from harness.diagnosis.suspect import Suspect
from harness.verdict import Status, merge

GUILTY = {
    "graceful_drain/bad-aborted-on-sigterm": ("the model server", "SIGTERM"),
    "graceful_drain/bad-container-crashed": ("the model server", "ended by itself"),
    "graceful_drain/bad-cut-by-the-gateway": ("the gateway", "at once"),
    "graceful_drain/bad-healthy-while-it-loaded": ("the readiness probe", "Ready before they served"),
    "graceful_drain/bad-killed-at-grace-end": ("settings", "shorter than answers last"),
    "graceful_drain/bad-pre-stop-cut-short": ("the kubelet", "preStop hook"),
    "graceful_drain/bad-a-dead-node-is-called-ready": ("node leases", "serves nobody"),
    "graceful_drain/bad-node-lost": ("the node spot-1", "without any notice"),
    "graceful_drain/bad-node-lost-before-the-api-knew": ("the cloud", "2 s after its notice"),
    "graceful_drain/bad-sent-to-a-pod-after-sigterm": ("the gateway", "already going"),
    "scale_up/bad-gpu-never-appears": ("the device plugin", "never showed the GPUs"),
    "scale_up/bad-its-probe-never-passes": ("the readiness probe", "never passes"),
    "scale_up/bad-never-decided": ("the autoscaler", "never raised the size"),
    "scale_up/bad-no-cloud-capacity": ("the provisioner", "ordered no node"),
    "scale_up/bad-room-came-only-when-another-went": (
        "the provisioner",
        "NodePool gpu has the 2 GPUs that its limits allow",
    ),
    "scale_up/bad-its-provisioner-is-gone": (
        "the provisioner",
        "its process had ended from 60.0 s to 300.0 s of the load",
    ),
    "scale_up/bad-its-nodepool-has-no-class": ("the provisioner", "NodePool gpu is not ready: NodeClassNotFound"),
    "scale_up/bad-its-nodepool-is-at-its-limit": (
        "the provisioner",
        "NodePool gpu has the 2 GPUs that its limits allow",
    ),
    "scale_up/bad-ready-but-no-traffic": ("", "added pod"),
    "scale_down/bad-thrash": ("the autoscaler", "turned the size"),
    "scale_down/bad-node-for-a-minute": ("the provisioner", "as soon as it came"),
    "pdb/bad-drain-ignores-the-budget": ("the drain", "past the Eviction API"),
    "pdb/bad-eviction-admitted-too-many": ("the Eviction API", "1 allowed, 2 pods evicted at once"),
    "pdb/bad-two-budgets-share-a-pod": ("settings", "at once"),
    "gang/bad-bound-one-by-one": ("the scheduler", "one by one"),
    "gang/bad-never-whole-again": ("the gang's controller", "left the rest"),
    "capacity/bad-instances-that-never-register": ("the cloud", "never registered"),
    "device/bad-another-gpu-than-declared": ("the provisioner", "not declared for"),
    "device/bad-lost-for-good": ("the device plugin", "lost 1 GPU"),
    "device/bad-the-same-gpu-for-two": ("the kubelet", "GPU-7"),
    "device/bad-never-there": ("the device plugin", "never showed"),
    "controllers/bad-two-autoscalers": ("HorizontalPodAutoscaler", "two autoscalers of one target"),
    "controllers/bad-two-writers-fight": ("two writers", "in turns"),
    "metrics_path/bad-a-hole": ("the metrics path", "no value"),
    "metrics_path/bad-read-too-late": ("the metrics path", "only after"),
    "metrics_path/bad-keda-fell-back-under-load": ("KEDA", "went from 8 to 5 while its source could not be read"),
    "metrics_path/bad-scaled-down-blind": ("the autoscaler", "for 0"),
    "requests/bad-tokens-lost": ("the gateway", "dropped 5 tokens"),
    "routing/bad-one-takes-all": ("the gateway", "12 of 20 requests to a replica that had 8 or more above another"),
    "routing/bad-a-mute-one-takes-all": ("the endpoint picker", "metrics failed from 5.0 s of the load on"),
    "metrics_path/bad-keda-reads-0-while-requests-wait": ("the metrics path", "as 0 while requests waited"),
    "metrics_path/bad-keda-cannot-read": (
        "the metrics path",
        "prometheus's process stood still from 50.0 s to 345.0 s",
    ),
    "slo/bad-its-picker-is-gone": ("the endpoint picker", "its process had ended from 95.0 s to 160.0 s of the load"),
    "claims/bad-a-device-in-two-claims": ("the scheduler", "1 device to two claims at once"),
    "claims/bad-a-pod-stays-on-its-tainted-gpu": ("the device taint eviction", "left 1 pod on a device"),
    "claims/bad-a-pod-on-a-healthy-gpu-is-taken-off": ("the device taint eviction", "took 1 pod off"),
    "claims/bad-three-healthy-gpus-of-four-help-nobody": ("settings", "more devices together"),
    "quota/bad-admitted-behind-its-gate": ("Kueue", "admitted a-0 and did not let it be scheduled"),
    "quota/bad-a-check-that-never-answers": ("Kueue", "kept quota for Job a, which held quota for 4 GPUs"),
    "quota/bad-stuck-after-retry": ("Kueue", "left Job a out of its queue"),
    "quota/bad-more-than-its-quota": ("Kueue", "gave"),
    "quota/bad-waits-beside-free-quota": ("Kueue", "left Job a without quota: it waited for 4 GPUs"),
    "quota/bad-its-queue-is-gone": ("Kueue", "its process had ended from 5.0 s to 200.0 s of the load"),
    "quota/bad-a-victim-stays": ("Kueue", "did not get back what it took away: a-0 held GPUs"),
    "slo/bad-a-crowd-that-is-more-than-they-can-answer": ("the load", "of which 2 replicas answered"),
    "recovery/bad-orphaned-pod": ("the garbage collector of pods", "which is gone"),
    "recovery/bad-a-pod-that-never-goes": ("the kubelet", "never took away"),
}


@pytest.mark.parametrize("name", GUILTY)
def test_the_first_cause_names_who_broke_what(name: str) -> None:
    check, _, stem = name.partition("/")
    case = load(HERE / check / f"{stem}.py")
    first = diagnose(case.history, [ask(check, case)])[0]
    component, act = GUILTY[name]
    assert component in first.component, first.sentence
    assert act in first.act, first.sentence
    assert first.explains == (check,)
    assert "{" not in first.sentence and "None" not in first.sentence


@pytest.mark.parametrize("file", [pytest.param(f, id=f"{c}/{f.stem}") for c in CHECKS for f in files(c)])
def test_no_rule_breaks_on_any_kept_history_and_none_accuses_where_nothing_failed(file: object) -> None:
    case = load(file)  # type: ignore[arg-type]  # a path, as ``files`` gives them
    finding = ask(file.parent.name, case)  # type: ignore[attr-defined]
    causes = diagnose(case.history, [finding])
    assert (causes == ()) or finding.status is Status.FAIL
    everything = Case(case.history, [finding])
    everything.failed = frozenset(CHECKS)
    for rule in RULES.values():
        for suspect in rule(everything):
            assert suspect.component and suspect.act
            assert suspect.breaks & set(CHECKS)
            assert suspect.since_ns <= max([e.t_ns for e in case.history.objects] + [case.history.run.load_end_ns])


def test_the_verdict_and_the_story_of_a_fail_tell_the_same_cause() -> None:
    case = load(HERE / "graceful_drain" / "bad-aborted-on-sigterm.py")
    verdict = explained(case.history, merge([ask("graceful_drain", case)]))
    assert verdict.sentence == f"{verdict.causes[0].sentence}. graceful_drain failed"
    assert f"First cause: {verdict.causes[0].sentence}." in verdict.findings[0].story
    assert "--shutdown-timeout" in verdict.findings[0].story


def test_a_healthy_story_has_no_suspect() -> None:
    story = Story()
    story.node("on-demand-1")
    story.pod("llm-a", "on-demand-1")
    for at_s in range(0, 300, 10):
        story.request(at_s, "llm-a", lasts_s=5)
    everything = Case(story.build(), [])
    everything.failed = frozenset(CHECKS)
    assert [suspect.act for rule in RULES.values() for suspect in rule(everything)] == []


def suspect(component: str, requests: set[int]) -> Suspect:
    return Suspect(component, "cut streams", 0, frozenset({"graceful_drain"}), requests=frozenset(requests))


def test_whose_requests_another_accounts_for_and_more_is_out_of_the_question() -> None:
    case = Case(Story().build(), [])
    gateway, server, node = (
        suspect("the gateway", {1, 2, 3}),
        suspect("the server", {1, 2}),
        suspect("the node", {3, 4}),
    )
    everyone = [gateway, server, node]
    assert refuted(case, server, everyone) == "its requests are accounted for by the gateway"
    assert [refuted(case, other, everyone) for other in (gateway, node)] == [None, None]


def test_as_many_requests_or_none_at_all_refute_nobody() -> None:
    case = Case(Story().build(), [])
    same = [suspect("the gateway", {1, 2}), suspect("the server", {1, 2}), suspect("settings", set())]
    assert [refuted(case, one, same) for one in same] == [None, None, None]


@pytest.mark.parametrize(("lost_s", "explains"), [(150, True), (441, False)])
def test_no_effect_comes_before_its_cause(lost_s: float, explains: bool) -> None:
    case = load(HERE / "slo" / "bad-a-crowd-that-is-more-than-they-can-answer.py")
    case_of = Case(case.history, [ask("slo", case)])
    lost = Suspect("the node", "fell", case.history.run.load_start_ns + round(lost_s * 1e8), frozenset({"slo", "pdb"}))
    assert narrowed(case_of, [lost])[0].breaks == ({"slo", "pdb"} if explains else {"pdb"})
