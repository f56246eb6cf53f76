"""The autoscaler's arithmetic. Pure."""

from __future__ import annotations

import pytest
from controller_cluster import pod

from fakes.controllers.scaling import (
    MetricsMissing,
    Recommendation,
    ScaleChange,
    behavior_of,
    default_behavior,
    limit,
    limit_without_behavior,
    propose,
    stabilize,
)

TARGET = 2000


def pods(running: int, pending: int = 0, **more) -> list[dict]:
    return [pod(f"r{i}", ready=True) for i in range(running)] + [pod(f"w{i}", phase="Pending") for i in range(pending)]


def values(*each: float) -> dict[str, int]:
    return {f"r{i}": int(v * 1000) for i, v in enumerate(each)}


@pytest.mark.parametrize(
    ("listed", "metrics", "current", "wanted"),
    [
        pytest.param(pods(4), values(3, 3, 3, 3), 4, 6, id="average-over-target"),
        pytest.param(pods(4), values(2.1, 2.1, 2.1, 2.1), 4, 4, id="within-tolerance"),
        pytest.param(pods(4), values(2.21, 2.21, 2.21, 2.21), 4, 5, id="just-beyond-tolerance"),
        pytest.param(pods(4), values(0, 0, 1, 1), 4, 1, id="down"),
        pytest.param(pods(4), values(0, 0, 0, 0), 4, 0, id="idle"),
        pytest.param(pods(4), values(8, 8, 8), 4, 12, id="missing-counts-as-idle-when-up"),
        pytest.param(pods(4), values(1, 1, 1), 4, 3, id="missing-counts-as-on-target-when-down"),
        pytest.param(pods(4), values(2.4, 2.4, 2.4), 4, 4, id="missing-would-turn-the-direction"),
        pytest.param(pods(4, pending=2), values(4, 4, 4, 4), 6, 8, id="pending-count-as-idle-when-up"),
        pytest.param(pods(4, pending=4), values(4, 4, 4, 4), 8, 8, id="pending-ones-will-do"),
        pytest.param(pods(4, pending=2), values(1, 1, 1, 1), 6, 2, id="pending-do-not-count-when-down"),
        pytest.param([*pods(2), pod("r2", deleted=True)], values(4, 4, 90), 2, 4, id="terminating-does-not-count"),
    ],
)
def test_propose(listed, metrics, current, wanted):
    assert propose(listed, metrics, current, TARGET).replicas == wanted


@pytest.mark.parametrize(
    ("listed", "metrics"),
    [
        pytest.param([], {}, id="no-pods"),
        pytest.param(pods(2), {}, id="no-metrics"),
        pytest.param(pods(0, pending=2), {"w0": 9000}, id="only-pending"),
    ],
)
def test_nothing_is_proposed_without_metrics(listed, metrics):
    with pytest.raises(MetricsMissing):
        propose(listed, metrics, 2, TARGET)


def test_up_is_immediate_and_down_waits_for_the_window():
    behavior = default_behavior()
    past = [Recommendation(0.0, 7), Recommendation(250.0, 5)]
    assert stabilize(7, 4, [Recommendation(0.0, 4)], 1.0, behavior).replicas == 7
    held = stabilize(2, 7, past, 299.0, behavior)
    assert (held.replicas, held.reason) == (7, "ScaleDownStabilized")
    assert stabilize(2, 7, past, 301.0, behavior).replicas == 5
    free = stabilize(2, 7, past, 551.0, behavior)
    assert (free.replicas, free.reason) == (2, "ReadyForNewScale")


def test_the_window_shrinks_with_the_time_scale():
    assert stabilize(2, 7, [Recommendation(0.0, 7)], 21.0, default_behavior(15)).replicas == 2


def test_an_up_window_takes_the_lowest():
    behavior = behavior_of({"scaleUp": {"stabilizationWindowSeconds": 60}})
    held = stabilize(9, 4, [Recommendation(10.0, 5)], 40.0, behavior)
    assert (held.replicas, held.reason) == (5, "ScaleUpStabilized")


@pytest.mark.parametrize(
    ("wanted", "current", "bounds", "changes", "replicas", "reason"),
    [
        pytest.param(7, 4, (4, 7), [], 7, "DesiredWithinRange", id="within"),
        pytest.param(9, 4, (4, 7), [], 7, "TooManyReplicas", id="max"),
        pytest.param(30, 4, (1, 50), [], 8, "ScaleUpLimit", id="four-or-double"),
        pytest.param(30, 10, (1, 50), [], 20, "ScaleUpLimit", id="double"),
        pytest.param(30, 8, (1, 50), [ScaleChange(95.0, 4)], 8, "ScaleUpLimit", id="spent-in-this-period"),
        pytest.param(30, 8, (1, 50), [ScaleChange(80.0, 4)], 16, "ScaleUpLimit", id="the-next-period"),
        pytest.param(2, 7, (4, 7), [], 4, "TooFewReplicas", id="min"),
        pytest.param(4, 7, (4, 7), [], 4, "DesiredWithinRange", id="down-by-all"),
    ],
)
def test_limit(wanted, current, bounds, changes, replicas, reason):
    got = limit(wanted, current, bounds, changes, [], 100.0, default_behavior())
    assert (got.replicas, got.reason) == (replicas, reason)


def test_policies_of_an_own_behavior():
    down = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
    behavior = behavior_of({"scaleDown": down, "scaleUp": {"selectPolicy": "Disabled"}})
    got = limit(2, 7, (1, 10), [], [], 0.0, behavior)
    assert (got.replicas, got.reason) == (6, "ScaleDownLimit")
    got = limit(2, 6, (1, 10), [], [ScaleChange(-30.0, 1)], 0.0, behavior)
    assert (got.replicas, got.reason) == (6, "ScaleDownLimit")
    got = limit(9, 6, (1, 10), [], [], 0.0, behavior)
    assert (got.replicas, got.reason) == (6, "ScaleUpLimit")


@pytest.mark.parametrize(
    ("wanted", "current", "replicas", "reason"),
    [
        (30, 1, 4, "ScaleUpLimit"),
        (30, 4, 8, "ScaleUpLimit"),
        (30, 9, 12, "TooManyReplicas"),
        (0, 4, 1, "TooFewReplicas"),
    ],
)
def test_limit_where_no_behavior_is_stated(wanted, current, replicas, reason):
    got = limit_without_behavior(wanted, current, (1, 12))
    assert (got.replicas, got.reason) == (replicas, reason)
