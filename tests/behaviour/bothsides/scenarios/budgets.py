"""Evictions under PodDisruptionBudgets, asked one after the other; the answers are part of what is compared."""

from __future__ import annotations

from typing import Any

from bothsides.objects import APP, budget, deployment, pod, stateful
from bothsides.stage import Explained, Scenario, Script, Stage

from harness.kube.port import DEPLOYMENT, EVENT, PDB, POD, REPLICA_SET, STATEFUL_SET

LOOKS = (PDB, POD, REPLICA_SET, EVENT)


async def evict_all(stage: Stage, *, apart_s: float = 0.4, limit: int = 100) -> None:
    for number, each in enumerate((await stage.pods(app="web"))[:limit]):
        await stage.evict(f"eviction {number}", each)
        await stage.at(stage.now_s() + apart_s)


def storm(replicas: int, **spec: Any) -> Script:
    """All pods of a Deployment are evicted at once, and again once the first have gone."""

    async def script(stage: Stage) -> None:
        await stage.budget(budget(**spec))
        await stage.create(DEPLOYMENT, deployment(replicas=replicas))
        await stage.at(6)
        await evict_all(stage)
        await stage.at(14)
        await evict_all(stage)
        await stage.at(20)

    return script


def share(replicas: int, **spec: Any) -> Script:
    """The first four pods, in less time than a replacement takes to be ready."""

    async def script(stage: Stage) -> None:
        await stage.budget(budget(**spec))
        await stage.at(2)
        await stage.create(DEPLOYMENT, deployment(replicas=replicas))
        await stage.at(8)
        await evict_all(stage, apart_s=0.3, limit=4)
        await stage.at(15)

    return script


async def unhealthy(stage: Stage, **spec: Any) -> None:
    await stage.budget(budget(minAvailable=2, **spec))
    await stage.create(DEPLOYMENT, deployment(replicas=3))
    await stage.at(5)
    stage.health.sick.append({"app": "web", "stage": stage.namespace})
    sick = (await stage.pods(app="web"))[:2]
    for each in sick:
        labels = {"metadata": {"labels": {"stage": stage.namespace}}}
        await stage.patch(POD, each["metadata"]["name"], labels)
    await stage.at(9)
    for number, each in enumerate(sick):
        await stage.evict(f"eviction of unready {number}", each)
        await stage.at(stage.now_s() + 0.4)
    ready = [p for p in await stage.pods(app="web") if "stage" not in p["metadata"]["labels"]]
    await stage.evict("eviction of ready", ready[0])
    await stage.at(15)


async def if_healthy_budget(stage: Stage) -> None:
    await unhealthy(stage)


async def always_allow(stage: Stage) -> None:
    await unhealthy(stage, unhealthyPodEvictionPolicy="AlwaysAllow")


async def two_budgets(stage: Stage) -> None:
    await stage.create(DEPLOYMENT, deployment(replicas=2))
    await stage.create(PDB, budget("one", minAvailable=1), budget("two", maxUnavailable=1))
    await stage.at(5)
    await evict_all(stage)
    await stage.at(8)


async def dry_run(stage: Stage) -> None:
    await stage.budget(budget(minAvailable=1))
    await stage.at(1)
    await stage.create(DEPLOYMENT, deployment(replicas=2))
    await stage.at(5)
    first, second = await stage.pods(app="web")
    await stage.evict("dry run", first, dry_run=True)
    await stage.at(7)
    await stage.evict("in earnest", first)
    await stage.at(7.5)
    await stage.evict("dry run of the other", second, dry_run=True)
    await stage.at(12)


async def bare_pods(stage: Stage) -> None:
    await stage.create(POD, pod("a"), pod("b"), pod("c"))
    await stage.at(2)  # Otherwise it is chance whether the budget's controller has heard of them.
    await stage.create(PDB, budget("by-number", minAvailable=2))
    await stage.at(5)
    await evict_all(stage)
    await stage.at(9)
    await stage.delete(PDB, "by-number")
    await stage.create(PDB, budget("by-share", maxUnavailable=1))
    await stage.at(14)


async def nothing_selected(stage: Stage) -> None:
    await stage.budget(budget(labels={"app": "nobody"}, minAvailable=1))
    await stage.at(2)
    await stage.budget(budget("all", labels=APP, maxUnavailable="50%"))
    await stage.create(DEPLOYMENT, deployment(replicas=0))
    await stage.at(5)


async def pending_pods(stage: Stage) -> None:
    await stage.budget(budget(minAvailable=2))
    await stage.create(DEPLOYMENT, deployment(replicas=2, nodeSelector={"no": "such-node"}))
    await stage.at(4)
    await evict_all(stage)
    await stage.at(8)


async def stateful_set(stage: Stage) -> None:
    """Numbered pods come back under their names; a budget counts them by the scale of their StatefulSet."""
    await stage.budget(budget(maxUnavailable=1))
    await stage.at(2.5)
    await stage.create(STATEFUL_SET, stateful("web", 3))
    await stage.at(11)
    for number in (2, 1):
        await stage.ask(f"eviction of web-{number}", stage.kube.evict(f"web-{number}", stage.namespace))
        await stage.at(stage.now_s() + 0.4)
    await stage.at(19)
    await stage.ask("eviction of web-0", stage.kube.evict("web-0", stage.namespace))
    await stage.at(27)


def _scenario(name: str, title: str, script: Script, **more: Any) -> Scenario:
    return Scenario(f"pdb-{name}", title, script, looks=LOOKS, **more)


ARBITRARY = (
    Explained(
        "*PodDisruptionBudget*",
        "of several budgets over one pod a real controller updates one, chosen arbitrarily; the embedded one all",
    ),
)

SCENARIOS = (
    _scenario("min-available", "eviction storm under minAvailable 2 of 3", storm(3, minAvailable=2), quick=True),
    _scenario("max-unavailable", "eviction storm under maxUnavailable 1 of 3", storm(3, maxUnavailable=1)),
    _scenario("min-percent", "eviction storm under minAvailable 50% of 5", share(5, minAvailable="50%")),
    _scenario("max-percent", "eviction storm under maxUnavailable 25% of 7", share(7, maxUnavailable="25%")),
    _scenario("unhealthy", "unready pods go only within a healthy budget", if_healthy_budget),
    _scenario("always-allow", "unready pods may always go under AlwaysAllow", always_allow),
    _scenario("two", "two budgets on a pod: the eviction is refused with 500", two_budgets, explained=ARBITRARY),
    _scenario("dry-run", "a dry run asks and spends nothing", dry_run),
    _scenario("bare-pods", "pods without a controller under budgets by number and by share", bare_pods),
    _scenario("stateful-set", "evicted pods of a StatefulSet come back one by one, by name", stateful_set),
    _scenario("nothing", "budgets that select nothing", nothing_selected),
    _scenario("pending", "pending pods need no budget", pending_pods),
)
