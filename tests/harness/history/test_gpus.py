from __future__ import annotations

from demo import demo
from story import Story

from harness.history.gpus import Fleet, fleets
from harness.history.lives import workload_pods


def counted_anew(fleet: Fleet, workload: set[str]) -> dict[str, int]:
    nodes, pods = fleet._nodes.values(), fleet._pods.items()
    there = {node.name for node in nodes}
    spot = {node.name for node in nodes if node.spot}
    working = [(uid, pod) for uid, pod in pods if pod.serving and pod.node in there]
    return {
        "gpus": sum(node.gpus for node in nodes),
        "serving": sum(pod.gpus for _, pod in working),
        "held": sum(pod.gpus for _, pod in pods if pod.node),
        "waiting": sum(pod.gpus for _, pod in pods if pod.waiting),
        "spot_nodes": len(spot),
        "leaving_nodes": sum(node.leaving for node in nodes),
        "replicas": sum(uid in workload for uid, _ in working),
        "replicas_on_spot": sum(uid in workload and pod.node in spot for uid, pod in working),
        "node_gpus_max": max((node.gpus for node in nodes), default=1),
    }


def test_the_sums_of_a_fleet_are_what_counting_anew_gives() -> None:
    history = demo()
    workload = {pod.uid for pod in workload_pods(history)}
    spans = 0
    for start, end, fleet in fleets(history, workload):
        spans += 1
        assert start < end
        wanted = counted_anew(fleet, workload)
        assert {name: getattr(fleet, name) for name in wanted} == wanted
    assert spans > 20


def test_the_spans_cover_the_load_without_a_hole() -> None:
    history = demo()
    edges = [(start, end) for start, end, _ in fleets(history)]
    assert edges[0][0] == history.run.load_start_ns
    assert edges[-1][1] == history.run.load_end_ns
    assert [end for _, end in edges[:-1]] == [start for start, _ in edges[1:]]


def test_a_node_is_paid_for_before_it_shows_its_gpus_and_only_at_a_stated_price() -> None:
    story = Story(time_scale=1, info={"prices_per_hour": {"spot": 6.0}})
    story.node("spot-1", 100, 200, pool="spot")
    story.node("on-demand-1", 300, 400)
    seen = [
        (fleet.gpus, fleet.spot_nodes, fleet.price_per_hour, sorted(+fleet.unpriced))
        for *_, fleet in fleets(story.build())
    ]
    assert seen[0] == (0, 0, 0.0, [])
    assert seen[1] == (4, 1, 6.0, [])
    assert seen[-1] == (8, 1, 6.0, ["on-demand-1"])
