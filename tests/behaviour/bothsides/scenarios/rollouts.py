"""Deployments and ReplicaSets."""

from __future__ import annotations

from bothsides.objects import deployment, rolling
from bothsides.stage import Explained, Scenario, Stage

from harness.kube.port import DEPLOYMENT, EVENT, POD, REPLICA_SET

LOOKS = (DEPLOYMENT, REPLICA_SET, POD, EVENT)


async def first_rollout(stage: Stage) -> None:
    await stage.create(DEPLOYMENT, deployment(replicas=3))
    await stage.at(9)


async def surge_only(stage: Stage) -> None:
    await stage.create(DEPLOYMENT, deployment(replicas=3, strategy=rolling(1, 0)))
    await stage.at(8)
    await stage.set_image("web", "app:v2")
    await stage.at(27)


async def unavailable_only(stage: Stage) -> None:
    await stage.create(DEPLOYMENT, deployment(replicas=4, strategy=rolling(0, 2)))
    await stage.at(8)
    await stage.set_image("web", "app:v2")
    await stage.at(27)


async def percentages(stage: Stage) -> None:
    await stage.create(DEPLOYMENT, deployment(replicas=7))
    await stage.at(9)
    await stage.set_image("web", "app:v2")
    await stage.at(30)


async def recreate(stage: Stage) -> None:
    await stage.create(DEPLOYMENT, deployment(replicas=2, strategy={"type": "Recreate"}))
    await stage.at(8)
    await stage.set_image("web", "app:v2")
    await stage.at(20)


async def stuck(stage: Stage) -> None:
    await stage.create(DEPLOYMENT, deployment(replicas=3, strategy=rolling(1, 1), top={"progressDeadlineSeconds": 5}))
    await stage.at(8)
    await stage.set_image("web", "app:bad")
    await stage.at(21)


async def rolled_back(stage: Stage) -> None:
    await stage.create(DEPLOYMENT, deployment(replicas=3, strategy=rolling(1, 1)))
    await stage.at(8)
    await stage.set_image("web", "app:bad")
    await stage.at(14)
    await stage.set_image("web", "app:v1")
    await stage.at(24)


async def paused(stage: Stage) -> None:
    await stage.create(DEPLOYMENT, deployment(replicas=2))
    await stage.at(8)
    await stage.patch(DEPLOYMENT, "web", {"spec": {"paused": True}})
    await stage.at(9)
    await stage.set_image("web", "app:v2")
    await stage.at(12)
    await stage.scale("web", 3)
    await stage.at(16)
    await stage.patch(DEPLOYMENT, "web", {"spec": {"paused": False}})
    await stage.at(30)


async def scaled_meanwhile(stage: Stage) -> None:
    await stage.create(DEPLOYMENT, deployment(replicas=4, strategy=rolling(2, 1)))
    await stage.at(8)
    await stage.set_image("web", "app:bad")
    await stage.at(14)
    await stage.scale("web", 8)
    await stage.at(21)
    await stage.scale("web", 3)
    await stage.at(28)


async def up_and_down(stage: Stage) -> None:
    await stage.create(DEPLOYMENT, deployment(replicas=2))
    await stage.at(8)
    await stage.scale("web", 5)
    await stage.at(14)
    await stage.scale("web", 1)
    await stage.at(20)
    await stage.scale("web", 0)
    await stage.at(26)


async def min_ready(stage: Stage) -> None:
    await stage.create(DEPLOYMENT, deployment(replicas=2, strategy=rolling(1, 0), top={"minReadySeconds": 3}))
    await stage.at(14)
    await stage.set_image("web", "app:v2")
    await stage.at(38)


ONE_BY_ONE = (
    Explained(
        "Event Deployment *",
        "pods that become ready in one moment are one step in virtual time; a real controller sees them one by one",
    ),
)

SCENARIOS = (
    Scenario("first-rollout", "a Deployment comes up", first_rollout, looks=LOOKS, quick=True),
    Scenario("rolling-surge", "rolling update, maxSurge 1, maxUnavailable 0", surge_only, looks=LOOKS),
    Scenario(
        "rolling-unavailable",
        "rolling update, maxSurge 0, maxUnavailable 2",
        unavailable_only,
        looks=LOOKS,
        explained=ONE_BY_ONE,
    ),
    Scenario(
        "rolling-percent",
        "rolling update of seven pods by the default percentages",
        percentages,
        looks=LOOKS,
        explained=ONE_BY_ONE,
    ),
    Scenario("recreate", "the Recreate strategy waits for the last old pod", recreate, looks=LOOKS),
    Scenario(
        "rollout-stuck", "a version that never becomes ready runs into progressDeadlineSeconds", stuck, looks=LOOKS
    ),
    Scenario("rollback", "a bad version is rolled back to the former one", rolled_back, looks=LOOKS),
    Scenario("pause-resume", "paused: a new template waits, scaling does not", paused, looks=LOOKS),
    Scenario(
        "scale-during-rollout",
        "a stuck rollout is scaled up and down in proportion",
        scaled_meanwhile,
        looks=(DEPLOYMENT, REPLICA_SET, EVENT),
    ),
    Scenario("scale", "scaled up, down and to zero", up_and_down, looks=LOOKS, settle_s=0.5),
    Scenario("min-ready-seconds", "a new pod counts as available only after minReadySeconds", min_ready, looks=LOOKS),
)
