"""An index and a tally must say what a look at all objects would say, after any course of changes."""

from __future__ import annotations

from collections import Counter
from random import Random

from fakes.controllers.informer import Index
from fakes.controllers.objects import node_of
from fakes.controllers.tally import Tally
from harness.kube.port import Json


def pod(name: str, node: str) -> Json:
    return {"metadata": {"namespace": "ns", "name": name}, "spec": {"nodeName": node}}


def test_index_finds_what_a_scan_finds() -> None:
    rng, index, present = Random(7), Index(lambda p: node_of(p) or None), dict[tuple[str, str], Json]()
    for _ in range(2000):
        key = ("ns", f"p{rng.randrange(20)}")
        old = present.get(key)
        if old is not None and rng.random() < 0.3:
            del present[key]
            index.update(key, None, old)
        else:
            new = present[key] = pod(key[1], rng.choice(["", "a", "b", "c"]))
            index.update(key, new, old)
        for node in ("a", "b", "c"):
            found = {p["metadata"]["name"]: p for p in index.get(node)}
            assert found == {k[1]: p for k, p in present.items() if node_of(p) == node}
    assert not index.get(""), "None is no place"


def test_tally_counts_what_a_scan_counts() -> None:
    rng, tally, present = Random(8), Tally[str](), dict[tuple[str, str], str]()
    for _ in range(2000):
        key = ("ns", f"p{rng.randrange(20)}")
        if rng.random() < 0.3:
            present.pop(key, None)
            tally.drop(key)
        else:
            present[key] = rng.choice("xyz")
            tally.put(key, present[key])
        assert tally.counts == Counter(present.values())
        assert len(tally) == len(present)
        assert tally.face(key) == present.get(key)
