"""The marks of ``harness/history/scaleup.py``, second by second; whole runs are in ``tests/histories/scale_up``."""

from __future__ import annotations

import pytest
from story import Story

from harness.history.lives import lives
from harness.history.replica_sets import Origin
from harness.history.scaleup import STAGES, Replica, replicas_that_came, waiting_at


def started() -> Story:
    """One replica on one node, a load step at 80 s, an autoscaler that can read the queue from 95 s on."""
    story = Story()
    story.node("on-demand-1")
    story.deployment(1)
    story.hpa()
    story.pod("llm-a", "on-demand-1")
    story.mark(0, "load_step")
    story.mark(80, "load_step")
    story.waiting(65, llm_a=0.0)
    story.waiting(95, llm_a=5.0)
    return story


def seconds(story: Story, replica: Replica) -> dict[str, float | str]:
    """Each mark as scenario seconds since the load began, or why it has none."""
    found: dict[str, float | str] = {}
    for name in STAGES:
        mark = replica.marks[name]
        since = None if mark.t_ns is None else round((mark.t_ns - story.ns(0)) / 1e9 * story.time_scale, 2)
        found[name] = since if since is not None else "missed" if mark.missed else "not needed"
    return found


def came(story: Story) -> tuple[Replica, ...]:
    return replicas_that_came(story.build())


def test_every_mark_of_a_replica_on_a_new_node_is_dated() -> None:
    story = started()
    story.scale(100, 2)
    story.event(170, "llm-b", "Pulled", "Successfully pulled image in 19.8s")
    story.pod("llm-b", "on-demand-2", 101, refused_s=102, bound_s=150, running_s=171, ready_s=195)
    story.claim("on-demand-2", 104, 106)
    story.node("on-demand-2", 140, 149)
    story.request(199, "llm-b", ttft_ms=100.0)
    (replica,) = came(story)
    assert seconds(story, replica) == {
        "T0": 80, "T0'": 95, "T1": 100, "T2": 102, "T3": 104, "T4": 140, "T5": 149, "T6": 171, "T7": 195, "T8": 200,
    }  # fmt: skip
    assert (replica.origin, replica.node, replica.waits_for) == (Origin.ADDED, "on-demand-2", "")
    assert replica.marks["T6"].note == "Successfully pulled image in 19.8s"
    assert replica.marks["T8"].note == "first token came last"
    assert "Insufficient nvidia.com/gpu" in replica.marks["T2"].note


def test_a_free_gpu_needs_no_node_and_says_so() -> None:
    story = started()
    story.scale(100, 2)
    story.pod("llm-b", "on-demand-1", 101, running_s=105, ready_s=130)
    story.request(131, "llm-b")
    (replica,) = came(story)
    assert [name for name in STAGES if not replica.marks[name].needed] == ["T2", "T3", "T4", "T5"]
    assert replica.marks["T4"].note == "there was room on on-demand-1 at once"


def test_a_gpu_that_comes_free_needs_no_new_node() -> None:
    story = started()
    story.scale(100, 2)
    story.pod("llm-b", "on-demand-1", 101, refused_s=102, bound_s=140, running_s=141, ready_s=150)
    story.request(160, "llm-b")
    (replica,) = came(story)
    assert seconds(story, replica)["T2"] == 102
    assert [replica.marks[name].note for name in ("T3", "T4", "T5")] == [
        "on-demand-1 was decided already when the pod found no room",
        "on-demand-1 was there already when the pod found no room",
        "on-demand-1 was usable already when the pod found no room",
    ]


def test_the_last_load_step_before_the_decision_counts() -> None:
    story = started()
    story.mark(300, "load_step")
    story.scale(100, 2)
    story.pod("llm-b", "on-demand-1", 101, running_s=105, ready_s=130)
    story.scale(320, 3)
    story.pod("llm-c", "on-demand-1", 321, running_s=325, ready_s=350)
    assert [seconds(story, replica)["T0"] for replica in came(story)] == [80, 300]


def test_replacements_are_matched_to_their_predecessors_in_order() -> None:
    story = started()
    story.pod("llm-x", "on-demand-1")
    story.pod("llm-y", "on-demand-1")
    story.evict(200, "llm-x")
    story.pod("llm-1", "on-demand-1", 200.5, running_s=205, ready_s=230)
    story.evict(210, "llm-y")
    story.pod("llm-2", "on-demand-1", 210.5, running_s=215, ready_s=240)
    story.end(215, "llm-x")
    story.request(245, "llm-2", ttft_ms=100.0)
    first, second = came(story)
    assert [(r.pod, r.origin, r.predecessor) for r in (first, second)] == [
        ("llm-1", Origin.REPLACEMENT, "llm-x"), ("llm-2", Origin.REPLACEMENT, "llm-y"),
    ]  # fmt: skip
    assert (seconds(story, second)["T0"], seconds(story, second)["T8"]) == (210, 246)
    assert not second.marks["T0'"].needed
    assert first.waits_for.startswith("traffic")


def test_a_pod_that_vanishes_without_a_word_is_replaced_too() -> None:
    story = started()
    story.remove(200, "Pod", "llm-a")
    story.pod("llm-b", "on-demand-1", 201, running_s=205, ready_s=230)
    (replica,) = came(story)
    assert (replica.origin, replica.predecessor) == (Origin.REPLACEMENT, "llm-a")


def test_pods_that_are_scaled_away_leave_no_vacancy() -> None:
    story = started()
    story.scale(100, 2)
    story.pod("llm-b", "on-demand-1", 101, running_s=105, ready_s=130)
    story.scale(300, 1)
    story.evict(300.2, "llm-b", None)
    story.end(310, "llm-b")
    story.scale(400, 2)
    story.pod("llm-c", "on-demand-1", 401, running_s=405, ready_s=430)
    assert [(r.pod, r.origin) for r in came(story)] == [("llm-b", Origin.ADDED), ("llm-c", Origin.ADDED)]


def test_what_the_watches_bring_in_another_order_is_still_matched() -> None:
    story = started()
    story.pod("llm-b", "on-demand-1", 99.5, running_s=105, ready_s=130)  # the pod, before the raise that made it
    story.scale(100, 2)
    (replica,) = came(story)
    assert (replica.origin, seconds(story, replica)["T1"]) == (Origin.ADDED, 100)


def test_pods_from_before_the_load_were_not_added() -> None:
    story = started()
    assert came(story) == ()


@pytest.mark.parametrize(
    ("stage", "waits_for"),
    [
        ("nothing", "quota: the pod was never created"),
        ("pod", "the scheduler: neither placed nor refused"),
        ("refused", "cloud capacity: no node was decided for it"),
        ("claim", "cloud capacity: its NodeClaim got no instance"),
        ("launched", "its node to start (NodeClaim on-demand-2 has not registered)"),
        ("registered", "its node to start"),
        ("ready", "the GPU to appear on its node"),
        ("bound", "its image"),
        ("running", "its model to warm up"),
        ("warm", "traffic: it was ready, but no first token came from it"),
        ("served", ""),
    ],
)
def test_the_first_missed_mark_is_named_in_peoples_words(stage: str, waits_for: str) -> None:
    order = [
        "nothing",
        "pod",
        "refused",
        "claim",
        "launched",
        "registered",
        "ready",
        "bound",
        "running",
        "warm",
        "served",
    ]
    reached = order.index(stage)

    def by(name: str) -> bool:
        return reached >= order.index(name)

    story = started()
    story.scale(100, 2)
    if by("pod"):
        story.pod(
            "llm-b", "on-demand-2" if by("bound") else None, 101, refused_s=102 if by("refused") else None, bound_s=150,
            running_s=170 if by("running") else None, ready_s=195 if by("warm") else None,
        )  # fmt: skip
    if by("claim"):
        story.claim("on-demand-2", 104, 106 if by("launched") else None)
    if by("registered"):
        story.node("on-demand-2", 140, 149 if by("ready") else None, gpus=4 if by("bound") else 0)
    if by("served"):
        story.request(200, "llm-b")
    story.event(599, "llm-b", "Noted", "the recording goes on to here")
    (replica,) = came(story)
    assert replica.waits_for == waits_for


def test_what_was_ordered_later_is_not_what_was_waited_for_before() -> None:
    """A node that does not join is given up at last, and another ordered: until then that one was waited for."""
    story = started()
    story.scale(100, 2)
    story.pod("llm-b", None, 101, refused_s=102)
    story.claim("never-joins", 104, 106)
    story.remove(500, "NodeClaim", "never-joins")
    story.claim("comes-late", 501, 503)
    story.event(599, "llm-b", "Noted", "the recording goes on to here")
    history = story.build()
    (replica,) = replicas_that_came(history)
    assert [waiting_at(history, replica, story.ns(t_s)).words for t_s in (300, 599)] == [
        f"its node to start (NodeClaim {name} has not registered)" for name in ("never-joins", "comes-late")
    ]


def test_a_replica_waits_for_the_node_that_it_was_told_to_be_for() -> None:
    """Karpenter plans further pods onto a node that it has ordered already."""
    story = started()
    story.claim("on-demand-2", 90, 92)
    story.scale(100, 2)
    story.pod("llm-b", None, 101, refused_s=102)
    story.event(103, "llm-b", "Nominated", "Pod should schedule on: nodeclaim/on-demand-2")
    story.event(599, "llm-b", "Noted", "the recording goes on to here")
    (replica,) = came(story)
    assert replica.waits_for == "its node to start (NodeClaim on-demand-2 has not registered)"


def test_after_a_gap_what_is_not_listed_again_is_gone_since_the_gap() -> None:
    story = Story()
    story.node("a")
    story.node("b")
    story._now.pop(("Node", "b"))
    story.gap(100, 130, "Node")
    a, b = lives(story.build().objects, "Node")
    assert a.gone is None
    assert b.gone is not None and (b.gone.t_ns, b.gone.reason) == (story.ns(130), "410 Gone")
    assert b.at(story.ns(90)) is not None and b.at(story.ns(140)) is None


def test_a_node_that_came_before_and_comes_again_dates_nothing() -> None:
    story = started()
    story.claim("on-demand-2", 5, 6)
    story.node("on-demand-2", 10, 12)
    story.node_gone("on-demand-2", 20)
    story.remove(21, "NodeClaim", "on-demand-2")
    story.scale(100, 2)
    story.pod("llm-b", "on-demand-2", 101, refused_s=102, bound_s=150, running_s=171, ready_s=195)
    story.claim("on-demand-2", 104, 106)
    story.node("on-demand-2", 140, 149)
    story.request(199, "llm-b", ttft_ms=100.0)
    story.node_gone("on-demand-2", 400)
    story.remove(401, "NodeClaim", "on-demand-2")
    story.claim("on-demand-2", 410, 411)
    story.node("on-demand-2", 420, 425)
    (replica,) = came(story)
    marks = seconds(story, replica)
    assert {mark: marks[mark] for mark in ("T3", "T4", "T5")} == {"T3": 104, "T4": 140, "T5": 149}
    assert replica.marks["T3"].note == "on-demand-2"


def test_what_the_first_of_a_name_served_the_second_has_not_served() -> None:
    """A StatefulSet's pod comes again under its name and is Ready; only the first was ever sent anything."""
    story = started()
    story.pod("llm-b", "on-demand-1", 100, running_s=110, ready_s=120)
    story.request(130, "llm-b", ttft_ms=100.0)
    story.evict(200, "llm-b")
    story.end(210, "llm-b")
    story.pod("llm-b", "on-demand-1", 211, running_s=220, ready_s=230)
    story.event(599, "llm-b", "Noted", "the recording goes on to here")
    first, second = came(story)
    assert [seconds(story, first)[mark] for mark in ("T7", "T8")] == [120, 131]
    assert [seconds(story, second)[mark] for mark in ("T7", "T8")] == [230, "missed"]
