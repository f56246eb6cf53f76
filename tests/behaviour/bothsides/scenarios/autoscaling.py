"""The horizontal autoscaler under given metric samples: every second one look."""

from __future__ import annotations

from collections.abc import Sequence

from bothsides.objects import deployment, hpa, pods_metric
from bothsides.stage import Scenario, Script, Stage

from harness.kube.port import DEPLOYMENT, EVENT, HPA, POD, Json

LOOKS = (HPA, DEPLOYMENT, EVENT)
QUEUE = pods_metric("10")
PODS = ("Deployment *, count *", "Deployment *, condition *", "Event Deployment *")
"""How fast pods become ready is looked at by the scenarios of rollouts; here it is what the autoscaler makes of it."""
LATE_S = 4.0
"""Before all that happens: even on a busy machine the first pods are ready by then."""


async def scaled(stage: Stage, autoscaler: Json, replicas: int = 2, ready_s: float = 4) -> None:
    """A Deployment that is up, and then its autoscaler."""
    await stage.create(DEPLOYMENT, deployment(replicas=replicas))
    await stage.at(LATE_S + ready_s)
    await stage.create(HPA, autoscaler)


def give(stage: Stage, value: float | Sequence[float | None] | None, metric: str = "queue") -> None:
    """One value for each pod, or a list by age of the pods; None: the metric is not known."""
    if value is None:
        stage.metrics.pods.pop((stage.namespace, metric), None)
    else:
        stage.metrics.pods[stage.namespace, metric] = value


def give_external(stage: Stage, *values: float, metric: str = "queue") -> None:
    stage.metrics.external[stage.namespace, metric] = list(values)


def series(autoscaler: Json, *samples: tuple[float, float | Sequence[float | None] | None], end_s: float,
           replicas: int = 2) -> Script:  # fmt: skip
    """``samples``: from when on, which value; the first one holds from the start."""

    async def script(stage: Stage) -> None:
        give(stage, samples[0][1])
        await scaled(stage, autoscaler, replicas)
        for at_s, value in samples[1:]:
            await stage.at(LATE_S + at_s)
            give(stage, value)
        await stage.at(LATE_S + end_s)

    return script


def behavior(up: Json | None = None, down: Json | None = None) -> Json:
    found: Json = {}
    if up is not None:
        found["scaleUp"] = up
    if down is not None:
        found["scaleDown"] = down
    return found


def policies(*rows: tuple[str, int, int], select: str | None = None, window_s: int | None = None) -> Json:
    found: Json = {"policies": [{"type": t, "value": v, "periodSeconds": p} for t, v, p in rows]}
    if select:
        found["selectPolicy"] = select
    if window_s is not None:
        found["stabilizationWindowSeconds"] = window_s
    return found


async def no_target(stage: Stage) -> None:
    await stage.create(HPA, hpa(QUEUE, target="nobody"))
    await stage.at(LATE_S + 3)


async def target_at_zero(stage: Stage) -> None:
    give(stage, 30)
    await stage.create(DEPLOYMENT, deployment(replicas=0))
    await stage.at(LATE_S + 2)
    await stage.create(HPA, hpa(QUEUE))
    await stage.at(LATE_S + 5)


async def outside_bounds(stage: Stage) -> None:
    give(stage, 10)
    await scaled(stage, hpa(QUEUE, low=1, high=3), replicas=5)
    await stage.at(LATE_S + 8)
    await stage.patch(HPA, "web", {"spec": {"minReplicas": 5, "maxReplicas": 6}})
    await stage.at(LATE_S + 13)


async def ambiguous(stage: Stage) -> None:
    give(stage, 10)
    await scaled(stage, hpa(QUEUE))
    await stage.at(LATE_S + 7)
    other = hpa(QUEUE)
    other["metadata"]["name"] = "other"
    await stage.create(HPA, other)
    await stage.at(LATE_S + 11)


async def external(stage: Stage) -> None:
    give_external(stage, 25, 5)
    by_pod = {"type": "External", "external": {"metric": {"name": "queue"}, "target": _average("10")}}
    await scaled(stage, hpa(by_pod, behavior=behavior(down=policies(("Pods", 4, 1), window_s=0))))
    await stage.at(LATE_S + 9)
    give_external(stage, 10)
    await stage.at(LATE_S + 13)
    stage.metrics.external.pop((stage.namespace, "queue"))
    await stage.at(LATE_S + 16)


async def external_value(stage: Stage) -> None:
    """Ready pods times the ratio: one pod more at each step, so that no step's pods can be half ready at a look."""
    give_external(stage, 19, 5)
    selected = {"name": "queue", "selector": {"matchLabels": {"model": "m"}}}
    total = {"type": "External", "external": {"metric": selected, "target": {"type": "Value", "value": "20"}}}
    await scaled(stage, hpa(total, high=4))
    await stage.at(LATE_S + 13)


async def external_unready(stage: Stage) -> None:
    """Half of the pods are unready: by twice the target there is nothing to add."""
    await stage.create(DEPLOYMENT, deployment(replicas=4))
    await stage.at(LATE_S + 2)
    stage.health.sick.append({"app": "web", "stage": stage.namespace})
    for each in (await stage.pods(app="web"))[:2]:
        await stage.patch(POD, each["metadata"]["name"], {"metadata": {"labels": {"stage": stage.namespace}}})
    await stage.at(LATE_S + 6)
    give_external(stage, 40)
    target = {"type": "Value", "value": "20"}
    await stage.create(HPA, hpa({"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}))
    await stage.at(LATE_S + 10)


async def of_object(stage: Stage) -> None:
    stage.metrics.objects[stage.namespace, "web", "queue"] = 45
    described = {"apiVersion": "v1", "kind": "Service", "name": "web"}
    value = {"type": "Object", "object": {"describedObject": described, "metric": {"name": "queue"},
             "target": {"type": "Value", "value": "30"}}}  # fmt: skip
    await scaled(stage, hpa(value))
    await stage.at(LATE_S + 9)
    average = {"type": "Object", "object": {**value["object"], "target": _average("9")}}
    await stage.patch(HPA, "web", {"spec": {"metrics": [average]}})
    await stage.at(LATE_S + 13)
    stage.metrics.objects.pop((stage.namespace, "web", "queue"))
    await stage.at(LATE_S + 16)


async def to_zero(stage: Stage) -> None:
    give_external(stage, 20)
    by_pod = {"type": "External", "external": {"metric": {"name": "queue"}, "target": _average("10")}}
    await scaled(stage, hpa(by_pod, low=0, behavior=behavior(down=policies(("Percent", 100, 1), window_s=0))))
    await stage.at(LATE_S + 8)
    give_external(stage, 0)
    await stage.at(LATE_S + 13)
    give_external(stage, 30)
    await stage.at(LATE_S + 19)


async def resource(stage: Stage) -> None:
    target = {"type": "Utilization", "averageUtilization": 50}
    await scaled(stage, hpa({"type": "Resource", "resource": {"name": "cpu", "target": target}}))
    await stage.at(LATE_S + 7)


async def zero_without_external(stage: Stage) -> None:
    await stage.ask("create", stage.kube.create(HPA, hpa(QUEUE, low=0), stage.namespace))


def _average(value: str) -> Json:
    return {"type": "AverageValue", "averageValue": value}


def _scenario(name: str, title: str, script: Script, **more: object) -> Scenario:
    return Scenario(f"hpa-{name}", title, script, looks=LOOKS, aside=PODS, settle_s=0.5, **more)  # type: ignore[arg-type]  # passed on


LIMITED_UP = behavior(up=policies(("Pods", 2, 4), ("Percent", 10, 4), select="Max"))
LEAST_UP = behavior(up=policies(("Pods", 3, 4), ("Percent", 50, 4), select="Min"))
DISABLED = behavior(down={"selectPolicy": "Disabled"})
SLOW_DOWN = behavior(down=policies(("Pods", 1, 3), window_s=4))
UP_WINDOW = behavior(up={"stabilizationWindowSeconds": 4})
NARROW = behavior(up={"tolerance": "0.01"}, down={"tolerance": "0.5", "stabilizationWindowSeconds": 0})

SCENARIOS = (
    _scenario(
        "up",
        "above target: up, then within the tolerance",
        series(hpa(QUEUE), (0, 20), (7, 10.5), end_s=12),
        quick=True,
    ),
    _scenario(
        "limits",
        "without behaviour: at most twice as many or four, then maxReplicas",
        series(hpa(QUEUE, high=7), (0, 90), end_s=12),
    ),
    _scenario("down-window", "down waits for the stabilisation window", series(hpa(QUEUE), (0, 10), (7, 1), end_s=12)),
    _scenario(
        "up-policies", "up by policies, selectPolicy Max", series(hpa(QUEUE, behavior=LIMITED_UP), (0, 50), end_s=16)
    ),
    _scenario("up-least", "up by policies, selectPolicy Min", series(hpa(QUEUE, behavior=LEAST_UP), (0, 50), end_s=14)),
    _scenario(
        "down-disabled", "selectPolicy Disabled never goes down", series(hpa(QUEUE, behavior=DISABLED), (0, 1), end_s=9)
    ),
    _scenario(
        "down-slow",
        "down by one pod per period after a short window",
        series(hpa(QUEUE, behavior=SLOW_DOWN), (0, 1), end_s=18, replicas=4),
    ),
    _scenario(
        "up-window", "up waits for its window too", series(hpa(QUEUE, behavior=UP_WINDOW), (0, 10), (8, 20), end_s=16)
    ),
    _scenario(
        "tolerance",
        "tolerances of its own for each direction",
        series(hpa(QUEUE, behavior=NARROW), (0, 10.3), (8, 6), end_s=12),
    ),
    _scenario(
        "missing", "no samples: hands off, and the reason", series(hpa(QUEUE), (0, None), (7, 20), (10, None), end_s=13)
    ),
    _scenario("some-missing", "a pod without a sample damps the change", series(hpa(QUEUE), (0, [30, None]), end_s=9)),
    _scenario(
        "one-of-two-missing",
        "of two metrics one is missing: up by the other, never down",
        series(hpa(QUEUE, pods_metric("5", "other")), (0, 15), (8, 1), end_s=11),
    ),
    _scenario("bounds", "outside minReplicas and maxReplicas", outside_bounds),
    _scenario("no-target", "the target does not exist", no_target),
    _scenario("target-at-zero", "a target scaled to zero by hand is left alone", target_at_zero),
    _scenario("ambiguous", "two autoscalers over the same pods both stop", ambiguous),
    _scenario("external", "an external metric, by average and missing", external),
    _scenario("external-value", "an external metric by value, with a selector", external_value),
    _scenario("external-unready", "an external metric by value counts ready pods only", external_unready),
    _scenario("object", "a metric of an object, by value and by average", of_object),
    _scenario("to-zero", "scale to zero and back on an external metric", to_zero),
    _scenario("resource", "a resource metric where nobody serves any", resource),
    _scenario("zero-refused", "minReplicas 0 without an object or external metric is refused", zero_without_external),
)
