"""Which endpoint stands in which slice: right after any course of changes, and few slices written per change."""

from __future__ import annotations

from random import Random

from fakes.controllers.slices import PER_SLICE, Shelf, SlicePlan, Wanted, pod_of, ports_of
from harness.kube.port import Json

HTTP = ((("name", "http"), ("port", 8000), ("protocol", "TCP")),)
OTHER = ((("name", "http"), ("port", 9000), ("protocol", "TCP")),)


class Written:
    """What the API server would hold after the plans."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        self.serial = 0

    def follow(self, plan: SlicePlan) -> int:
        for content in plan.create:
            self.serial += 1
            self.shelf.put(made(f"s{self.serial}", content.endpoints, content.ports))
        for old, content in plan.update:
            self.shelf.put(made(old["metadata"]["name"], content.endpoints, content.ports))
        for old in plan.delete:
            self.shelf.drop(old["metadata"]["name"])
        return len(plan.create) + len(plan.update) + len(plan.delete)

    def sizes(self) -> list[int]:
        return [len(s["endpoints"]) for s in self.shelf.slices.values()]


def made(name: str, endpoints: list[Json], ports) -> Json:
    return {"metadata": {"name": name}, "endpoints": endpoints, "ports": [dict(p) for p in ports]}


def want(pod: str, *, ready: bool = True, ports=HTTP) -> Wanted:
    return Wanted(ports, {"conditions": {"ready": ready}, "targetRef": {"name": pod}})


def test_slices_hold_a_hundred_and_differ_by_ports():
    wanted = {f"p{i:03}": want(f"p{i:03}") for i in range(130)} | {"x": want("x", ports=OTHER)}
    written = Written()
    written.follow(written.shelf.plan(wanted, wanted))
    found = [(len(s["endpoints"]), ports_of(s)) for s in written.shelf.slices.values()]
    assert found == [(100, HTTP), (30, HTTP), (1, OTHER)]


def test_a_service_without_endpoints_has_one_empty_slice():
    written = Written()
    assert written.follow(written.shelf.plan([], {})) == 1
    assert written.sizes() == [0]
    assert written.follow(written.shelf.plan([], {})) == 0, "and it stays as it is"
    written.follow(written.shelf.plan(["p"], {"p": want("p")}))
    assert (written.sizes(), written.serial) == ([1], 1), "the empty one is filled"
    written.follow(written.shelf.plan(["p"], {}))
    assert (written.sizes(), written.serial) == ([0], 1)


def test_a_new_endpoint_goes_where_it_fills_best():
    written = Written()
    wanted = {f"p{i:03}": want(f"p{i:03}") for i in range(250)}
    written.follow(written.shelf.plan(wanted, wanted))
    gone = "p000"
    del wanted[gone]
    written.follow(written.shelf.plan([gone], wanted))
    assert written.sizes() == [99, 100, 50]
    wanted["new"] = want("new")
    assert written.follow(written.shelf.plan(["new"], wanted)) == 1
    assert written.sizes() == [100, 100, 50]


def test_any_course_of_changes_ends_right_and_writes_little():
    rng, written, wanted = Random(5), Written(), dict[str, Wanted]()
    writes = 0
    for _ in range(1500):
        pod = f"p{rng.randrange(400)}"
        if pod in wanted and rng.random() < 0.4:
            del wanted[pod]
        else:
            wanted[pod] = want(pod, ready=rng.random() < 0.5, ports=OTHER if rng.random() < 0.1 else HTTP)
        writes += written.follow(written.shelf.plan([pod], wanted))
        stands = [(pod_of(e), ports_of(s), e) for s in written.shelf.slices.values() for e in s["endpoints"]]
        assert sorted(p for p, _, _ in stands) == sorted(wanted), "each once"
        assert all(wanted[p] == Wanted(ports, entry) for p, ports, entry in stands)
        assert max(written.sizes()) <= PER_SLICE
    assert writes < 2 * 1500
