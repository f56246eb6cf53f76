"""Nodes that fall silent, come back, or are tainted. Silence counts after six seconds here, on both sides."""

from __future__ import annotations

from typing import Any

from bothsides.hollow import NodeSpec
from bothsides.objects import budget, deployment, no_execute_toleration, pod, service
from bothsides.stage import Scenario, Script, Stage

from harness.kube.port import DEPLOYMENT, ENDPOINT_SLICE, EVENT, NODE, PDB, POD, SERVICE, Json, Resource

LOOKS = (NODE, POD, EVENT)
TWO = (NodeSpec("node-a"), NodeSpec("node-b"))
THREE = (*TWO, NodeSpec("node-c"))
FIVE = (*THREE, NodeSpec("node-d"), NodeSpec("node-e", zone="zone-b"))
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


async def one_after_the_other(stage: Stage) -> None:
    """Two of five fall silent; the second one's NoExecute taint waits ten seconds for its turn."""
    for node in ("node-a", "node-b"):
        await stage.create(POD, pod(f"on-{node[-1]}", tolerations=patient(1), **on(node)))
    await stage.at(4)
    stage.nodes.stop("node-a")
    await stage.at(6.5)
    stage.nodes.stop("node-b")
    await stage.at(27)


async def zone_down(stage: Stage) -> None:
    """Three of the four nodes of a small zone: once it counts as disrupted, nobody more is given up in it."""
    for node in ("node-a", "node-b", "node-c"):
        await stage.create(POD, pod(f"on-{node[-1]}", tolerations=patient(1), **on(node)))
    await stage.at(4)
    for node, pause_s in (("node-a", 2.5), ("node-b", 2.5), ("node-c", 0.0)):
        stage.nodes.stop(node)
        await stage.at(stage.now_s() + pause_s)
    await stage.at(30)


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


async def drained(stage: Stage) -> None:
    """Three pods leave a node one after the other, as their budget allows."""
    await stage.patch(NODE, "node-b", {"spec": {"unschedulable": True}})
    await stage.budget(budget(maxUnavailable=1))
    await stage.at(1)
    await stage.create(DEPLOYMENT, deployment(replicas=3))
    await stage.at(6)
    await stage.patch(NODE, "node-b", {"spec": {"unschedulable": None}})
    await stage.at(8)
    await stage.kubectl("drain", "drain", "node-a", "--timeout=60s")
    await stage.at(32)
    await stage.kubectl("uncordon", "uncordon", "node-a")
    await stage.at(34)


async def drain_refused(stage: Stage) -> None:
    await stage.create(POD, pod("bare", **on("node-a")))
    await stage.at(4)
    await stage.kubectl("drain", "drain", "node-a")
    await stage.at(8)
    await stage.kubectl("drain by force", "drain", "node-a", "--force", "--grace-period=1")
    await stage.at(16)


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
    _scenario("one-by-one", "nodes are given up one after the other", one_after_the_other, FIVE),
    _scenario("zone-down", "a zone that is mostly down gives up no more nodes", zone_down, FIVE),
    _scenario("tainted", "a NoExecute taint takes pods off by their tolerations", tainted),
    _scenario("taint-taken-back", "a NoExecute taint that is taken back in time", taint_taken_back),
    _scenario("cordoned", "a cordoned node takes nothing new", cordoned),
    _scenario("drained", "kubectl drain under a budget", drained, looks=(NODE, POD, PDB, EVENT), kubectl=True),
    _scenario("drain-refused", "kubectl drain meets a pod without a controller", drain_refused, kubectl=True),
    _scenario("deleted", "a Node object is deleted: its pods are collected", deleted, within_s=22.0),
)
