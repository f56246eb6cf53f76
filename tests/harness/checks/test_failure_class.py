from __future__ import annotations

import pytest

from harness.checks.failure_class import _OF_WAIT, FailureClass, _asks_for_more
from harness.history.waiting import Wait, is_quota, never_created, waiting_in

CLAIM = {"status": {"conditions": [{"type": "Launched", "status": "False", "message": "m"}]}}
LAUNCHED = {"metadata": {"name": "gpu-1"}, "status": {"conditions": [{"type": "Launched", "status": "True"}]}}
READY_NODE = {"status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "8"}}}
GATED = {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}}
QUOTA = "creating instance, insufficient capacity, VcpuLimitExceeded: 1 of pool p exist, the limit is 1"
STOCK = "creating instance, insufficient capacity, InsufficientInstanceCapacity: zone a has none left"


@pytest.mark.parametrize(
    ("stage", "pod", "claim", "node", "refusals", "what"),
    [
        ("T2", GATED, None, None, "", Wait.GATE),
        ("T2", {}, None, None, "", Wait.SCHEDULER),
        ("T3", {}, None, None, "", Wait.NO_NODE_DECIDED),
        ("T3", {}, None, None, QUOTA, Wait.CLOUD_QUOTA),
        ("T3", {}, None, None, STOCK, Wait.CLOUD_CAPACITY),
        ("T4", {}, CLAIM, None, STOCK, Wait.CLOUD_CAPACITY),
        ("T4", {}, CLAIM, None, QUOTA, Wait.CLOUD_QUOTA),
        ("T4", {}, LAUNCHED, None, QUOTA, Wait.NODE_START),
        ("T5", {}, LAUNCHED, READY_NODE, "", Wait.DEVICE_PLUGIN),
        ("T5", {}, LAUNCHED, {}, "", Wait.NODE_START),
        ("T6", {"spec": {"nodeName": "n"}}, None, READY_NODE, "", Wait.IMAGE),
        ("T6", {}, None, READY_NODE, "", Wait.PLACEMENT),
        ("T7", {}, None, None, "", Wait.MODEL),
        ("T8", {}, None, None, "", Wait.TRAFFIC),
    ],
)
def test_a_late_replica_waits_for_the_first_stage_it_missed(stage, pod, claim, node, refusals, what) -> None:
    assert waiting_in(stage, pod, claim, node, refusals).what is what


def test_the_clouds_own_words_are_told_without_those_around_them() -> None:
    said = waiting_in("T3", {}, None, None, QUOTA).words
    assert said == "quota: the cloud refused an instance (VcpuLimitExceeded: 1 of pool p exist, the limit is 1)"


def test_too_many_calls_are_no_quota_of_instances() -> None:
    assert is_quota("MaxSpotInstanceCountExceeded: 3") and not is_quota("RequestLimitExceeded: request limit exceeded")


def test_a_pod_that_was_never_made_met_a_quota_or_a_webhook() -> None:
    assert never_created("exceeded quota: gpus").what is Wait.NAMESPACE_QUOTA
    assert never_created('failed calling webhook "pods.x"').what is Wait.ADMISSION


def test_every_sub_cause_of_scaling_up_has_its_class() -> None:
    assert set(_OF_WAIT) == set(Wait)
    assert set(_OF_WAIT.values()) == {
        FailureClass.NO_NEW_CAPACITY, FailureClass.NODE_WITHOUT_POD, FailureClass.RUNNING_WITHOUT_TRAFFIC
    }  # fmt: skip


def test_an_hpa_whose_metric_is_below_its_target_may_still_ask_for_more_than_the_floor() -> None:
    def scaler(size: int) -> dict[str, object]:
        return {"spec": {"minReplicas": 4}, "status": {"currentReplicas": size}}

    assert _asks_for_more(scaler(5), 68 / 77)  # 4.4 replicas' worth, rounded up to what there is
    assert not _asks_for_more(scaler(5), 60 / 77)  # 3.9: it could go, so it is not the metric that keeps it
    assert not _asks_for_more(scaler(0), 9.0)
