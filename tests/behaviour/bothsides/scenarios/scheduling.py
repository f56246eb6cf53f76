"""Which node, which sentence, and who has to make room."""

from __future__ import annotations

from typing import Any

from bothsides import objects
from bothsides.hollow import NodeSpec
from bothsides.objects import APP, budget, pod_group, priority_class
from bothsides.stage import Explained, Scenario, Script, Stage

from harness.kube.port import EVENT, NODE, PDB, POD, POD_GROUP, PRIORITY_CLASS, Json, Resource

LOOKS = (POD, POD_GROUP, PDB, EVENT)
ONE = (NodeSpec("node-a", gpus=2),)
# Of equally good nodes the real scheduler draws one. Where it matters, no two nodes are equally good: the first is.
TWO = (NodeSpec("node-a", gpus=2, cpu=40), NodeSpec("node-b", gpus=4, cpu=32))
ZONES = (
    NodeSpec("node-a", zone="zone-a", cpu=48),
    NodeSpec("node-b", zone="zone-b", cpu=40),
    NodeSpec("node-c", zone="zone-b", cpu=32),
)


def pod(name: str, **spec: Any) -> Json:
    return objects.pod(name, **{"requests": {"cpu": "4"}, **spec})


def required(*expressions: Json) -> Json:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def zone_is(*zones: str) -> Json:
    return {"key": "topology.kubernetes.io/zone", "operator": "In", "values": list(zones)}


async def no_nodes_fit(stage: Stage) -> None:
    await stage.create(POD, pod("too-many-gpus", gpus=8))
    await stage.create(POD, pod("too-much-cpu", requests={"cpu": "100"}))
    await stage.create(POD, pod("too-much-of-all", gpus=3, requests={"cpu": "100", "memory": "1000Gi"}))
    await stage.create(POD, pod("wrong-label", nodeSelector={"disk": "fast"}))
    await stage.create(POD, pod("wrong-zone", **required(zone_is("zone-z"))))
    await stage.create(POD, pod("unknown-resource", limits={"example.com/fpga": "1"}))
    await stage.at(4)


async def mixed_reasons(stage: Stage) -> None:
    """One node is cordoned, one tainted, one too small."""
    await stage.patch(NODE, "node-a", {"spec": {"unschedulable": True}})
    await stage.patch(NODE, "node-b", {"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]}})
    await stage.at(2)
    await stage.create(POD, pod("nowhere", gpus=8))
    await stage.at(5)


async def frees_up(stage: Stage) -> None:
    await stage.create(POD, pod("first", gpus=2, grace_s=1))
    await stage.at(4)
    await stage.create(POD, pod("second", gpus=2))
    await stage.at(7)
    await stage.delete(POD, "first")
    await stage.at(14)


async def gated(stage: Stage) -> None:
    await stage.create(POD, pod("gated", schedulingGates=[{"name": "example.com/one"}, {"name": "example.com/two"}]))
    await stage.at(3)
    await stage.patch(POD, "gated", {"spec": {"schedulingGates": [{"name": "example.com/two"}]}})
    await stage.at(5)
    await stage.patch(POD, "gated", {"spec": {"schedulingGates": None}})
    await stage.at(9)


async def affinity(stage: Stage) -> None:
    await stage.create(POD, pod("required", **required(zone_is("zone-a"))))
    preferred = {"weight": 100, "preference": {"matchExpressions": [zone_is("zone-a")]}}
    prefers = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}}
    await stage.create(POD, pod("preferred", affinity=prefers))
    await stage.create(POD, pod("not-there", **required({**zone_is("zone-b"), "operator": "NotIn"})))
    await stage.at(5)


def spread(when: str = "DoNotSchedule", skew: int = 1, key: str = "topology.kubernetes.io/zone") -> Json:
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": {"matchLabels": APP}}


async def spread_out(stage: Stage) -> None:
    for number in range(4):
        await stage.create(POD, pod(f"web-{number}", topologySpreadConstraints=[spread()]))
        await stage.at(stage.now_s() + 1)
    await stage.patch(NODE, "node-a", {"spec": {"unschedulable": True}})
    await stage.at(6)
    await stage.create(POD, pod("web-4", topologySpreadConstraints=[spread()]))
    await stage.create(POD, pod("web-5", topologySpreadConstraints=[spread()]))
    await stage.at(10)


async def spread_softly(stage: Stage) -> None:
    for number in range(3):
        constraint = spread("ScheduleAnyway", key="kubernetes.io/hostname")
        await stage.create(POD, pod(f"web-{number}", topologySpreadConstraints=[constraint]))
        await stage.at(stage.now_s() + 1)
    await stage.at(6)


def near(kind: str, key: str = "kubernetes.io/hostname", app: str = "web") -> Json:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


async def anti_affinity(stage: Stage) -> None:
    for number in range(3):
        await stage.create(POD, pod(f"web-{number}", **near("podAntiAffinity")))
        await stage.at(stage.now_s() + 1)
    await stage.create(POD, pod("other", labels={"app": "other"}, **near("podAntiAffinity", app="web")))
    await stage.at(7)


async def pod_affinity(stage: Stage) -> None:
    zone = "topology.kubernetes.io/zone"
    await stage.create(POD, pod("lonely", labels={"app": "lonely"}, **near("podAffinity", zone)))
    await stage.at(2)
    await stage.create(POD, pod("web-0", nodeSelector={"kubernetes.io/hostname": "node-a"}))
    await stage.at(5)
    await stage.create(POD, pod("web-1", **near("podAffinity", zone)))
    await stage.create(POD, pod("first", labels={"app": "self"}, **near("podAffinity", zone, app="self")))
    await stage.at(9)


async def classes(stage: Stage) -> None:
    await stage.create(PRIORITY_CLASS, priority_class(f"high-{stage.namespace}", 1000))
    await stage.create(PRIORITY_CLASS, priority_class(f"polite-{stage.namespace}", 1000, preemptionPolicy="Never"))
    await stage.at(stage.now_s() + 0.5)


async def preemption(stage: Stage) -> None:
    await classes(stage)
    await stage.create(POD, pod("low-1", gpus=1, grace_s=3))
    await stage.at(3)
    await stage.create(POD, pod("low-2", gpus=1, grace_s=3))
    await stage.at(6)
    await stage.create(POD, pod("high", gpus=1, priorityClassName=f"high-{stage.namespace}"))
    await stage.at(14)


async def preemption_never(stage: Stage) -> None:
    await classes(stage)
    await stage.create(POD, pod("low", gpus=2, grace_s=1))
    await stage.at(5)
    await stage.create(POD, pod("polite", gpus=2, priorityClassName=f"polite-{stage.namespace}"))
    await stage.at(8)
    await stage.delete(POD, "low")
    await stage.at(14)


async def preemption_under_budget(stage: Stage) -> None:
    """Of two nodes with victims, the one whose victims no budget protects is emptied."""
    await classes(stage)
    await stage.budget(budget(labels={"app": "kept"}, minAvailable=1))
    there = {"nodeSelector": {"kubernetes.io/hostname": "node-a"}}
    await stage.create(POD, pod("kept", labels={"app": "kept"}, gpus=2, **there))
    await stage.create(POD, pod("free", gpus=4))
    await stage.at(5)
    await stage.create(POD, pod("high", gpus=2, priorityClassName=f"high-{stage.namespace}"))
    await stage.at(14)


async def preemption_of_kept(stage: Stage) -> None:
    """Where only protected victims are left, the budget is broken."""
    await classes(stage)
    await stage.budget(budget(labels={"app": "kept"}, minAvailable=1))
    await stage.create(POD, pod("kept", labels={"app": "kept"}, gpus=2, grace_s=1))
    await stage.at(5)
    await stage.create(POD, pod("high", gpus=2, priorityClassName=f"high-{stage.namespace}"))
    await stage.at(12)


async def preemption_useless(stage: Stage) -> None:
    await classes(stage)
    await stage.create(POD, pod("low", gpus=2))
    await stage.at(4)
    await stage.create(POD, pod("huge", gpus=8, priorityClassName=f"high-{stage.namespace}"))
    await stage.at(8)


def member(name: str, group: str, **spec: Any) -> Json:
    return pod(name, schedulingGroup={"podGroupName": group}, **spec)


async def gang(stage: Stage) -> None:
    await stage.create(POD_GROUP, pod_group("team", 3))
    await stage.create(POD, *(member(f"team-{n}", "team", gpus=1) for n in range(2)))
    await stage.at(4)
    await stage.create(POD, member("team-2", "team", gpus=1))
    await stage.at(9)


async def gang_short(stage: Stage) -> None:
    """Four GPUs on one node and two on the other; five members of two each can never be placed, three can."""
    await stage.create(POD_GROUP, pod_group("big", 5), pod_group("small", 3))
    await stage.create(POD, *(member(f"big-{n}", "big", gpus=2) for n in range(5)))
    await stage.at(4)
    await stage.create(POD, *(member(f"small-{n}", "small", gpus=2) for n in range(3)))
    await stage.at(10)


async def gang_of_another_priority(stage: Stage) -> None:
    await classes(stage)
    await stage.create(POD_GROUP, pod_group("team", 2))
    high = f"high-{stage.namespace}"
    await stage.create(POD, *(member(f"team-{n}", "team", gpus=1, priorityClassName=high) for n in range(2)))
    await stage.at(5)


async def gang_without_group(stage: Stage) -> None:
    await stage.create(POD, member("early", "late", gpus=1))
    await stage.at(4)
    await stage.create(POD_GROUP, pod_group("late", 1))
    await stage.at(9)


def team(group: str, count: int, **spec: Any) -> tuple[Json, ...]:
    """Members that share an alias: which of several alike is a victim is drawn."""
    made = [member(f"{group}-", group, **{"gpus": 2, "labels": {"app": group}, **spec}) for _ in range(count)]
    for each in made:
        each["metadata"] = {"generateName": each["metadata"].pop("name"), **each["metadata"]}
    return tuple(made)


async def gang_preempts(stage: Stage, members: int = 2, **more: Any) -> None:
    """A gang of four fills both nodes. One of higher priority wants to be on one of them, where it needs the room of
    one pod."""
    await classes(stage)
    high = {"priorityClassName": f"high-{stage.namespace}"}
    await stage.create(POD_GROUP, pod_group("low", 4, **more), pod_group("high", members, **high))
    await stage.create(POD, *team("low", 4, grace_s=3))
    await stage.at(5)
    there = {"nodeSelector": {"kubernetes.io/hostname": "node-a"}}
    await stage.create(POD, *team("high", members, gpus=1, **there, **high))
    await stage.at(14)


async def gang_preempts_half(stage: Stage) -> None:
    await gang_preempts(stage)


async def gang_preempts_whole(stage: Stage) -> None:
    await gang_preempts(stage, disruptionMode={"all": {}})


async def gang_preempts_in_vain(stage: Stage) -> None:
    await gang_preempts(stage, members=5)


async def gang_never_preempts(stage: Stage) -> None:
    await classes(stage)
    polite = {"priorityClassName": f"polite-{stage.namespace}"}
    await stage.create(POD_GROUP, pod_group("low", 4), pod_group("polite", 2, **polite))
    await stage.create(POD, *team("low", 4, grace_s=3))
    await stage.at(5)
    await stage.create(POD, *team("polite", 2, **polite))
    await stage.at(10)


async def pod_preempts_gang(stage: Stage) -> None:
    await classes(stage)
    await stage.create(POD_GROUP, pod_group("low", 4, disruptionMode={"all": {}}))
    await stage.create(POD, *team("low", 4, grace_s=3))
    await stage.at(5)
    await stage.create(POD, pod("high", gpus=2, priorityClassName=f"high-{stage.namespace}"))
    await stage.at(14)


async def gangs_compete(stage: Stage) -> None:
    await stage.create(POD_GROUP, pod_group("first", 3), pod_group("second", 3))
    await stage.create(POD, *team("first", 3, grace_s=1))
    await stage.at(4)
    await stage.create(POD, *team("second", 3, grace_s=1))
    await stage.at(8)
    for each in await stage.pods(app="first"):
        await stage.delete(POD, each["metadata"]["name"])
    await stage.at(16)


def _scenario(name: str, title: str, script: Script, nodes: tuple[NodeSpec, ...] = TWO, **more: Any) -> Scenario:
    looks: tuple[Resource, ...] = more.pop("looks", LOOKS)
    more.setdefault("placement", True)
    return Scenario(f"schedule-{name}", title, script, nodes=nodes, looks=looks, **more)


BACK_OFF_S = 5.0
"""A real scheduler that tries a gang too early, when the first of several pods has gone, say, waits some seconds before
it tries again. The embedded one sees all of them gone in one moment."""
LEVEL = (NodeSpec("node-a", gpus=4, cpu=40), NodeSpec("node-b", gpus=4, cpu=32))

MERGED = (
    Explained(
        "Event *", "the recorder of the real scheduler may merge or drop what it says of a gang that is tried again"
    ),
)

SCENARIOS = (
    _scenario("unschedulable", "what is said of pods that fit nowhere", no_nodes_fit, quick=True),
    _scenario("mixed-reasons", "each node has its own reason", mixed_reasons, ZONES),
    _scenario("frees-up", "a waiting pod gets the GPUs of one that ends", frees_up, ONE),
    _scenario("gated", "scheduling gates, taken away one by one", gated, ONE),
    _scenario("affinity", "node affinity, required and preferred", affinity, ZONES),
    _scenario("spread", "topology spread, DoNotSchedule", spread_out, ZONES[:2]),
    _scenario("spread-softly", "topology spread, ScheduleAnyway", spread_softly, ZONES),
    _scenario("anti-affinity", "pods that do not share a node", anti_affinity, TWO),
    _scenario("pod-affinity", "pods that want company", pod_affinity, ZONES),
    _scenario("preemption", "a higher priority takes the room of a lower one", preemption, ONE),
    _scenario("preemption-never", "preemptionPolicy Never waits", preemption_never, ONE),
    _scenario("preemption-budget", "victims that no budget protects go first", preemption_under_budget),
    _scenario("preemption-breaks", "the last resort breaks a budget", preemption_of_kept, ONE),
    _scenario(
        "preemption-useless", "nobody is evicted for a pod that would not fit even then", preemption_useless, ONE
    ),
    _scenario("gang", "a gang waits for its last member", gang, placement=False),
    _scenario(
        "gang-short", "a gang that cannot be placed holds nothing back", gang_short, placement=False, explained=MERGED
    ),
    _scenario("gang-priority", "a gang of another priority than its PodGroup", gang_of_another_priority),
    _scenario(
        "gangs-compete",
        "two gangs, and room for one of them",
        gangs_compete,
        LEVEL,
        placement=False,
        within_s=BACK_OFF_S,
    ),
    _scenario(
        "gang-preempts",
        "a gang of higher priority takes the room of a member of another, which is left short",
        gang_preempts_half,
        LEVEL,
        placement=False,
        within_s=BACK_OFF_S,
    ),
    _scenario(
        "gang-preempts-whole",
        "a gang that is disrupted as one leaves as one",
        gang_preempts_whole,
        LEVEL,
        placement=False,
        within_s=BACK_OFF_S,
    ),
    _scenario(
        "gang-preempts-in-vain",
        "a gang that would not fit even then evicts nobody",
        gang_preempts_in_vain,
        LEVEL,
        placement=False,
        within_s=BACK_OFF_S,
    ),
    _scenario("gang-preempts-never", "a gang that preempts nobody", gang_never_preempts, LEVEL, placement=False),
    _scenario(
        "pod-preempts-gang",
        "a pod takes the room of a gang that leaves as one",
        pod_preempts_gang,
        LEVEL,
        placement=False,
        within_s=BACK_OFF_S,
    ),
    _scenario("gang-without-group", "a member waits for its PodGroup", gang_without_group, placement=False),
)
