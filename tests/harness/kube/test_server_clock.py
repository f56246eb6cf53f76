"""What kube-controller-manager counts is divided by the time scale; what the kubelet counts is not."""

from __future__ import annotations

from copy import deepcopy

import pytest

from harness.kube.port import Json
from harness.kube.server_clock import on_the_servers_clock


def fifteenth(scenario_s: float) -> float:
    return scenario_s / 15


POD_SPEC: Json = {
    "terminationGracePeriodSeconds": 90,
    "tolerations": [{"key": "a", "tolerationSeconds": 300}, {"key": "b"}, {"key": "c", "tolerationSeconds": 0}],
    "containers": [{"name": "c", "readinessProbe": {"periodSeconds": 5}}],
}


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        pytest.param(
            "HorizontalPodAutoscaler",
            {
                "minReplicas": 4,
                "behavior": {
                    "scaleDown": {"stabilizationWindowSeconds": 300, "policies": [{"value": 100, "periodSeconds": 15}]},
                    "scaleUp": {"stabilizationWindowSeconds": 0, "policies": [{"value": 4, "periodSeconds": 60}]},
                },
            },
            {
                "minReplicas": 4,
                "behavior": {
                    "scaleDown": {"stabilizationWindowSeconds": 20, "policies": [{"value": 100, "periodSeconds": 1}]},
                    "scaleUp": {"stabilizationWindowSeconds": 0, "policies": [{"value": 4, "periodSeconds": 4}]},
                },
            },
            id="autoscaler",
        ),
        pytest.param(
            "Deployment",
            {"replicas": 2, "minReadySeconds": 31, "progressDeadlineSeconds": 600, "template": {"spec": POD_SPEC}},
            {
                "replicas": 2,
                "minReadySeconds": 3,
                "progressDeadlineSeconds": 40,
                "template": {
                    "spec": {
                        **POD_SPEC,
                        "tolerations": [
                            {"key": "a", "tolerationSeconds": 20}, {"key": "b"}, {"key": "c", "tolerationSeconds": 0},
                        ],
                    }
                },
            },
            id="deployment",
        ),
        pytest.param("Job", {"ttlSecondsAfterFinished": 5}, {"ttlSecondsAfterFinished": 1}, id="at-least-a-second"),
        pytest.param("Service", {"sessionAffinityConfig": {}}, {"sessionAffinityConfig": {}}, id="nothing-to-count"),
    ],
)  # fmt: skip
def test_what_the_controller_manager_counts_is_divided(kind: str, spec: Json, expected: Json) -> None:
    obj = {"kind": kind, "metadata": {"name": "x"}, "spec": spec}
    before = deepcopy(obj)
    assert on_the_servers_clock(obj, fifteenth) == {**obj, "spec": expected}
    assert obj == before, "the object that was handed in is left as it was"


def test_an_object_without_a_spec_is_left_alone() -> None:
    obj = {"kind": "PriorityClass", "metadata": {"name": "x"}, "value": 3}
    assert on_the_servers_clock(obj, fifteenth) == obj
