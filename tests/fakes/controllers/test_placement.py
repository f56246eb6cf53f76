"""Where pods fit, and how a refusal is worded. Pure."""

from __future__ import annotations

from random import Random

import pytest
from controller_cluster import node, pod, pod_group

from fakes.controllers.cluster import Cluster
from fakes.controllers.gang import GangPlan, GangRefused, group_status, plan_gang
from fakes.controllers.gang_preemption import NO_VICTIMS
from fakes.controllers.objects import name_of
from fakes.controllers.placement import explain
from fakes.controllers.preemption import plan_preemption
from fakes.controllers.quantity import format_milli, milli, parse_quantity, scaled_value
from fakes.controllers.resources import requested

NO_SCHEDULE = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}


def affinity(key: str, operator: str, *values: str) -> dict:
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}
    needed = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": needed}}


def spot(name: str = "n1") -> dict:
    return node(name, labels={"karpenter.sh/capacity-type": "spot"})


KEY = "karpenter.sh/capacity-type"


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        pytest.param({"nodeSelector": {KEY: "spot"}}, True, id="selector"),
        pytest.param({"nodeSelector": {KEY: "on-demand"}}, False, id="selector-other"),
        pytest.param(affinity(KEY, "In", "spot", "x"), True, id="in"),
        pytest.param(affinity(KEY, "NotIn", "spot"), False, id="not-in"),
        pytest.param(affinity("absent", "NotIn", "spot"), True, id="not-in-absent"),
        pytest.param(affinity(KEY, "Exists"), True, id="exists"),
        pytest.param(affinity(KEY, "DoesNotExist"), False, id="does-not-exist"),
    ],
)
def test_node_affinity(spec, fits):
    choice = Cluster([spot()], []).choose(pod(spec=spec))
    assert (choice == "n1") is fits


@pytest.mark.parametrize(
    ("tolerations", "fits"),
    [
        pytest.param([], False, id="none"),
        pytest.param([{"operator": "Exists"}], True, id="everything"),
        pytest.param([{"key": "karpenter.sh/disrupted", "operator": "Exists"}], True, id="key"),
        pytest.param([{"key": "karpenter.sh/disrupted", "operator": "Equal", "value": "x"}], False, id="other-value"),
        pytest.param(
            [{"key": "karpenter.sh/disrupted", "effect": "NoExecute", "operator": "Exists"}], False, id="effect"
        ),
    ],
)
def test_taints(tolerations, fits):
    choice = Cluster([node("n1", taints=[NO_SCHEDULE])], []).choose(pod(spec={"tolerations": tolerations}))
    assert (choice == "n1") is fits


def test_refusals_are_worded_as_the_real_scheduler_does():
    tainted, full = node("n1", taints=[NO_SCHEDULE]), node("n2")
    holders = [pod(f"p{i}", node="n2") for i in range(4)]
    refusals = Cluster([tainted, full], holders).choose(pod("new"))
    assert not isinstance(refusals, str)
    assert explain(refusals, "never mind.") == (
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s). preemption: never "
        "mind."
    )
    assert plan_preemption(Cluster([tainted, full], holders), pod("new"), refusals, ()) == (
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for "
        "scheduling."
    )
    no_gpus = node("n1")
    del no_gpus["status"]["allocatable"]["nvidia.com/gpu"]
    refusals = Cluster([no_gpus, spot("n2")], []).choose(pod(spec={"nodeSelector": {"kubernetes.io/hostname": "n1"}}))
    assert not isinstance(refusals, str)
    assert explain(refusals) == (
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) didn't match Pod's node affinity/selector."
    )
    assert explain({}) == "no nodes available to schedule pods"


def test_a_cordoned_node_takes_nothing():
    cordoned = node("n1")
    cordoned["spec"]["unschedulable"] = True
    refusals = Cluster([cordoned], []).choose(pod())
    assert not isinstance(refusals, str)
    assert refusals["n1"].reasons == ("node(s) were unschedulable",)


@pytest.mark.parametrize(
    ("holder", "free"),
    [
        pytest.param(pod("h", node="n1", deleted=True), False, id="terminating-holds"),
        pytest.param(pod("h", node="n1", deleted=True, phase="Succeeded"), True, id="until-its-containers-have-ended"),
        pytest.param(pod("h", node="n1", phase="Failed"), True, id="failed-does-not-hold"),
        pytest.param(pod("h", node="other"), True, id="elsewhere"),
    ],
)
def test_who_holds_a_gpu(holder, free):
    assert (Cluster([node("n1", 1)], [holder]).choose(pod()) == "n1") is free


def test_equal_nodes_are_filled_alternately_and_ties_go_by_name():
    cluster = Cluster([node("b"), node("a")], [])
    chosen = []
    for i in range(4):
        each = pod(f"p{i}", owner="llm")
        choice = cluster.choose(each)
        assert isinstance(choice, str)
        cluster.place(each, choice)
        chosen.append(choice)
    assert chosen == ["a", "b", "a", "b"]


def test_requests_count_init_containers_and_sidecars():
    def asks(cpu: str, **more: str) -> dict:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "containers": [asks("1"), asks("500m")],
        "initContainers": [asks("3"), asks("250m", restartPolicy="Always"), asks("1")],
    }
    assert requested({"spec": spec}) == {"cpu": 3000}
    assert requested({"spec": {**spec, "initContainers": [asks("250m", restartPolicy="Always")]}}) == {"cpu": 1750}


@pytest.mark.parametrize(
    ("text", "value"), [("4Gi", 4 * 2**30), ("250m", 0.25), ("1e3", 1000), ("2", 2), (3, 3), ("1.5k", 1500)]
)
def test_quantities(text, value):
    assert parse_quantity(text) == value


def test_quantities_that_are_none():
    with pytest.raises(ValueError):
        parse_quantity("4Q")
    assert milli(0.0004) == 1
    assert (format_milli(2000), format_milli(2500)) == ("2", "2500m")
    assert scaled_value("25%", 7, round_up=True) == 2
    assert scaled_value("25%", 7, round_up=False) == 1
    assert scaled_value(3, 7, round_up=True) == 3


def short(scheduled: int, remaining: int) -> str:
    said = f"minCount (4) cannot be satisfied: {scheduled} scheduled, {remaining} remaining"
    return f"{said}, pod group preemption: No preemption victims found for incoming preemptor"


def told(found: GangPlan | GangRefused) -> GangPlan:
    return found.told(f"pod group preemption: {NO_VICTIMS}") if isinstance(found, GangRefused) else found


def gang(count: int, prefix: str = "b") -> list[dict]:
    return [pod(f"{prefix}-{i}", group=prefix) for i in range(count)]


@pytest.mark.parametrize(
    ("gpus", "members", "bound", "placed", "message"),
    [
        pytest.param(4, 4, 0, 4, "", id="all-fit"),
        pytest.param(3, 4, 0, 0, short(3, 0), id="one-short"),
        pytest.param(0, 4, 0, 0, short(0, 3), id="stops-at-the-first"),
        pytest.param(1, 1, 3, 1, "", id="a-replacement-alone"),
        pytest.param(1, 3, 4, 1, "", id="beyond-the-minimum-each-for-itself"),
        pytest.param(4, 5, 0, 4, "", id="more-than-the-minimum-may-wait"),
    ],
)
def test_gang_is_placed_whole_or_not_at_all(gpus, members, bound, placed, message):
    cluster = Cluster([node("n1", gpus)], [])
    plan = told(plan_gang(cluster, pod_group("b", 4), gang(members), bound))
    assert (len(plan.placed), plan.message) == (placed, message)
    assert len(plan.placed) + len(plan.refused) == members
    # What was only tried holds nothing.
    single = cluster.choose(pod("single"))
    assert isinstance(single, str) is (gpus - placed > 0)


def test_the_member_that_found_no_room_says_why():
    plan = told(plan_gang(Cluster([node("n1", 3)], []), pod_group("b", 4), gang(4), 0))
    said = {name_of(p): text for p, text in plan.refused}
    assert said["b-3"].startswith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    assert said["b-0"] == f"pod group is unschedulable, {short(3, 0)}"


def test_group_status_is_terminal_once_true():
    group = pod_group("b", 4)
    waiting = group_status(group, GangPlan(message="minCount (4) cannot be satisfied"), "t1")
    assert waiting is not None
    assert waiting["conditions"][0]["status"] == "False"
    group["status"] = waiting
    assert group_status(group, GangPlan(message="minCount (4) cannot be satisfied"), "t2") is None
    placed = group_status(group, GangPlan(), "t3")
    assert placed is not None
    assert placed["conditions"][0] | {"observedGeneration": 1} == {
        "type": "PodGroupInitiallyScheduled",
        "status": "True",
        "reason": "Scheduled",
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": "t3",
    }
    group["status"] = placed
    assert group_status(group, GangPlan(message="lost"), "t4") is None


def test_a_kept_cluster_chooses_as_a_fresh_one_does():
    """Whatever has changed since, the remembered answers are those of a cluster that was only just made."""
    rng, kept = Random(3), Cluster()
    nodes: dict[str, dict] = {}
    pods: dict[str, dict] = {}
    kinds = [{}, {"nodeSelector": {KEY: "spot"}}, {"tolerations": [{"operator": "Exists"}]}]
    for turn in range(600):
        match rng.randrange(5):
            case 0:
                name = f"n{rng.randrange(6)}"
                taints = [NO_SCHEDULE] if rng.random() < 0.3 else []
                nodes[name] = node(name, taints=taints, labels={KEY: rng.choice(["spot", "on-demand"])})
                kept.node_changed(nodes[name])
            case 1 if nodes:
                gone = rng.choice(sorted(nodes))
                del nodes[gone]
                kept.node_gone(gone)
            case 2 if pods:
                kept.pod_gone(pods.pop(rng.choice(sorted(pods))))
            case _:
                asked = pod(f"p{turn}", spec=rng.choice(kinds))
                choice = kept.choose(asked)
                assert choice == Cluster(nodes.values(), pods.values()).choose(asked)
                if isinstance(choice, str):
                    pods[name_of(asked)] = {**asked, "spec": {**asked["spec"], "nodeName": choice}}
                    kept.place(asked, choice)
    assert pods, "nothing was ever placed"
