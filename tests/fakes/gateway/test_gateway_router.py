"""Which replica is next: pure."""

from __future__ import annotations

from random import Random

from replicas import endpoint

from fakes.gateway.router import Router
from fakes.nodes.address import LISTEN_ANNOTATION
from harness.kube.port import Json


def pods(*names: str) -> dict[str, Json]:
    return {
        n: {"metadata": {"name": n, "annotations": {LISTEN_ANNOTATION: f"127.0.0.1:{1000 + i}"}}}
        for i, n in enumerate(names)
    }


def refresh(router: Router, pods: dict[str, Json], *endpoints: Json) -> None:
    """The slice and the pods as they are from now on."""
    for name in sorted({*pods, *router.backends}):
        router.pod_changed(name, pods.get(name))
    router.slice_changed("s", endpoints, pods.get)


def make(*endpoints: Json, keep_terminating: bool = False) -> Router:
    router = Router(Random(1), keep_terminating)
    refresh(router, pods("a", "b", "c"), *endpoints)
    return router


def pick(router: Router) -> str:
    chosen = router.pick()
    assert chosen is not None
    return chosen.pod


def test_equal_ones_take_turns() -> None:
    router = make(endpoint("a", "n1"), endpoint("b", "n1"), endpoint("c", "n2"))
    turns = [pick(router) for _ in range(6)]
    assert sorted(turns[:3]) == ["a", "b", "c"]
    assert turns[3:] == turns[:3]


def test_the_least_loaded_wins_whoever_was_used_last() -> None:
    router = make(endpoint("a", "n1"), endpoint("b", "n1"))
    router.backends["a"].in_flight = 2
    router.backends["b"].in_flight = 1
    assert [pick(router) for _ in range(3)] == ["b", "b", "b"]
    assert router.pick(exclude=[router.backends["b"]]) is router.backends["a"]


def test_only_ready_endpoints_that_are_not_terminating_are_routable() -> None:
    router = make(endpoint("a", "n1", ready=False), endpoint("b", "n1", ready=False, terminating=True))
    assert router.pick() is None
    refresh(router, pods("a", "b"), endpoint("a", "n1"), {"targetRef": {"name": "b"}})
    assert {pick(router), pick(router)} == {"a", "b"}  # absent conditions mean ready


def test_planted_terminating_pods_stay_until_their_endpoint_is_gone() -> None:
    router = make(endpoint("a", "n1", ready=False, terminating=True), keep_terminating=True)
    assert pick(router) == "a"
    refresh(router, pods("a"))
    assert router.pick() is None


def test_a_replica_without_an_address_or_a_pod_is_not_routable() -> None:
    router = Router(Random(1))
    refresh(router, {"a": {"metadata": {"name": "a"}}}, endpoint("a", "n1"), endpoint("gone", "n1"))
    assert router.pick() is None
    refresh(router, pods("a"), endpoint("a", "n1"))
    assert pick(router) == "a"


def test_a_restarted_container_moves_its_backend() -> None:
    router = make(endpoint("a", "n1"))
    backend = router.backends["a"]
    backend.in_flight = 1
    refresh(router, pods("x", "a"), endpoint("a", "n1"))
    assert router.backends["a"] is backend
    assert (backend.address, backend.in_flight) == (("127.0.0.1", 1001), 1)


def test_an_endpoint_that_moves_between_slices_is_one_replica() -> None:
    router, there = Router(Random(1)), pods("a", "b")
    router.slice_changed("s1", [endpoint("a", "n1"), endpoint("b", "n1")], there.get)
    backend = router.backends["a"]
    router.slice_changed("s2", [endpoint("a", "n1")], there.get)
    assert not router.slice_changed("s1", [endpoint("b", "n1")], there.get)
    assert router.backends["a"] is backend and backend.routable
    assert router.slice_changed("s2", [], there.get), "its address is lost"
    assert sorted(router.backends) == ["b"] and not backend.routable


def test_planted_who_was_not_there_at_the_first_request_is_never_sent_anything() -> None:
    router = Router(Random(1), first_only=True)
    assert router.pick() is None  # nobody was there yet, and nobody is kept for that
    refresh(router, pods("a"), endpoint("a", "n1"))
    assert pick(router) == "a"
    refresh(router, pods("a", "b"), endpoint("a", "n1"), endpoint("b", "n1"))
    assert [pick(router) for _ in range(4)] == ["a"] * 4
    refresh(router, pods("b"), endpoint("b", "n1"))
    assert router.pick() is None and not router.busy()
