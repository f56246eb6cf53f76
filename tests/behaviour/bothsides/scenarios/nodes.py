"""Nodes that fall silent, come back, or are tainted. Silence counts after six seconds here, on both sides."""

from __future__ import annotations

from typing import Any

from bothsides.hollow import NodeSpec
from bothsides.objects import deployment, no_execute_toleration, pod, service
from bothsides.stage import Scenario, Script, Stage

from harness.kube.port import DEPLOYMENT, ENDPOINT_SLICE, EVENT, NODE, POD, SERVICE, Json, Resource

LOOKS = (NODE, POD, EVENT)
TWO = (NodeSpec("node-a"), NodeSpec("node-b"))
THREE = (*TWO, NodeSpec("node-c"))
UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"


def patient(seconds: int) -> list[Json]:
    return [no_execute_toleration(UNREACHABLE, seconds), no_execute_toleration(NOT_READY, seconds)]


def on(node: str) -> Json:
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


async def lost(stage: Stage) -> None:
    """One node of two: its impatient pod goes after its toleration, its patient one stays for now."""
    await stage.create(POD, pod("quick", tolerations=patient(3), **on("node-a")))
    await stage.create(POD, pod("slow", tolerations=patient(60), **on("node-a")))
    await stage.create(POD, pod("elsewhere", **on("node-b")))
    await stage.at(4)
    stage.nodes.stop("node-a")
    await stage.at(20)


async def lost_and_back(stage: Stage) -> None:
    await stage.create(POD, pod("slow", tolerations=patient(60), **on("node-a")))
    await stage.create(POD, pod("elsewhere", **on("node-b")))
    await stage.at(4)
    stage.nodes.stop("node-a")
    await stage.at(14)
    stage.nodes.start(stage_node(stage, "node-a"))
    await stage.at(22)


def stage_node(stage: Stage, name: str) -> NodeSpec:
    return next(n for n in THREE if n.name == name)


async def replaced(stage: Stage) -> None:
    """A Deployment and its Service lose a node."""
    await stage.create(SERVICE, service(selector={"app": "web"}))
    spread = {"topologyKey": "kubernetes.io/hostname", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": {"matchLabels": {"app": "web"}}}  # fmt: skip
    await stage.create(DEPLOYMENT, deployment(replicas=2, tolerations=patient(2), topologySpreadConstraints=[spread]))
    await stage.at(5)
    stage.nodes.stop("node-a")
    await stage.at(20)


async def all_down(stage: Stage) -> None:
    """Nobody is evicted while no node at all is heard of."""
    for node in ("node-a", "node-b"):
        await stage.create(POD, pod(f"on-{node[-1]}", tolerations=patient(2), **on(node)))
    await stage.at(4)
    stage.nodes.stop("node-a")
    await stage.at(6.5)  # so that the first one is tainted before the second falls silent too
    stage.nodes.stop("node-b")
    await stage.at(18)


async def tainted(stage: Stage) -> None:
    """NoExecute taints by hand: at once, after the toleration, and never."""
    mine = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}
    await stage.create(POD, pod("intolerant", **on("node-a")))
    await stage.create(POD, pod("for-a-while", tolerations=[{**mine, "tolerationSeconds": 4}], **on("node-a")))
    await stage.create(POD, pod("for-ever", tolerations=[mine], **on("node-a")))
    await stage.at(4)
    await taint(stage, "node-a", {"key": "maintenance", "value": "now", "effect": "NoExecute"})
    await stage.at(14)


async def taint_taken_back(stage: Stage) -> None:
    mine = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    await stage.create(POD, pod("for-a-while", tolerations=[mine], **on("node-a")))
    await stage.at(4)
    await taint(stage, "node-a", {"key": "maintenance", "effect": "NoExecute"})
    await stage.at(6)
    await taint(stage, "node-a")
    await stage.at(12)


async def taint(stage: Stage, node: str, *taints: Json) -> None:
    await stage.patch(NODE, node, {"spec": {"taints": list(taints)}})


async def cordoned(stage: Stage) -> None:
    await stage.patch(NODE, "node-a", {"spec": {"unschedulable": True}})
    await stage.at(2)
    await stage.create(POD, pod("anywhere"), pod("only-there", **on("node-a")))
    await stage.at(5)
    await stage.patch(NODE, "node-a", {"spec": {"unschedulable": None}})
    await stage.at(10)


async def deleted(stage: Stage) -> None:
    """A machine dies and its Node object is deleted: the pods go with the next pass that finds them without a node."""
    await stage.create(POD, pod("orphan", **on("node-a")))
    await stage.create(POD, pod("elsewhere", **on("node-b")))
    await stage.at(4)
    stage.nodes.stop("node-a")
    await stage.kube.delete(NODE, "node-a")
    await stage.at(80)


def _scenario(name: str, title: str, script: Script, nodes: tuple[NodeSpec, ...] = TWO, **more: Any) -> Scenario:
    looks: tuple[Resource, ...] = more.pop("looks", LOOKS)
    return Scenario(f"node-{name}", title, script, nodes=nodes, looks=looks, placement=True, **more)


SCENARIOS = (
    _scenario("lost", "a node falls silent: unknown, tainted, its pods leave by their tolerations", lost),
    _scenario("lost-and-back", "a silent node comes back before its pods have to go", lost_and_back),
    _scenario(
        "replaced",
        "a Deployment and its endpoints after the loss of a node",
        replaced,
        THREE,
        looks=(NODE, POD, DEPLOYMENT, ENDPOINT_SLICE, EVENT),
    ),
    _scenario("all-down", "every node falls silent: nothing is evicted", all_down),
    _scenario("tainted", "a NoExecute taint takes pods off by their tolerations", tainted),
    _scenario("taint-taken-back", "a NoExecute taint that is taken back in time", taint_taken_back),
    _scenario("cordoned", "a cordoned node takes nothing new", cordoned),
    _scenario("deleted", "a Node object is deleted: its pods are collected", deleted, within_s=22.0),
)
