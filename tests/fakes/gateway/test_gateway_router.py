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


def slices(*endpoints: Json) -> list[Json]:
    return [{"endpoints": list(endpoints)}]


def make(*endpoints: Json, keep_terminating: bool = False) -> Router:
    router = Router(Random(1), keep_terminating)
    router.refresh(slices(*endpoints), pods("a", "b", "c"))
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
    router.refresh(slices(endpoint("a", "n1"), {"targetRef": {"name": "b"}}), pods("a", "b"))
    assert {pick(router), pick(router)} == {"a", "b"}  # absent conditions mean ready


def test_planted_terminating_pods_stay_until_their_endpoint_is_gone() -> None:
    router = make(endpoint("a", "n1", ready=False, terminating=True), keep_terminating=True)
    assert pick(router) == "a"
    router.refresh(slices(), pods("a"))
    assert router.pick() is None


def test_a_replica_without_an_address_or_a_pod_is_not_routable() -> None:
    router = Router(Random(1))
    router.refresh(slices(endpoint("a", "n1"), endpoint("gone", "n1")), {"a": {"metadata": {"name": "a"}}})
    assert router.pick() is None
    router.refresh(slices(endpoint("a", "n1")), pods("a"))
    assert pick(router) == "a"


def test_a_restarted_container_moves_its_backend() -> None:
    router = make(endpoint("a", "n1"))
    backend = router.backends["a"]
    backend.in_flight = 1
    router.refresh(slices(endpoint("a", "n1")), pods("x", "a"))
    assert router.backends["a"] is backend
    assert (backend.address, backend.in_flight) == (("127.0.0.1", 1001), 1)
