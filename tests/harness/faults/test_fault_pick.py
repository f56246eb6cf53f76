from __future__ import annotations

from random import Random

import pytest

from harness.errors import BadInput
from harness.faults.pick import FleetNode, matching_nodes, pick_nodes
from harness.selectors import parse_selector

FLEET = (
    FleetNode("spot-2", {"pool": "spot", "zone": "a", "gpu": ""}, 4),
    FleetNode("spot-1", {"pool": "spot", "zone": "b", "gpu": ""}, 4),
    FleetNode("od-1", {"pool": "on-demand", "zone": "a", "gpu": ""}, 4),
    FleetNode("cpu-1", {"zone": "c", "karpenter.sh/nodepool": "cpu"}),
)


@pytest.mark.parametrize(
    "selector, names",
    [
        ("pool=spot", ("spot-1", "spot-2")),
        ("pool==spot", ("spot-1", "spot-2")),
        ("pool!=spot", ("cpu-1", "od-1")),
        ("pool in (spot, on-demand)", ("od-1", "spot-1", "spot-2")),
        ("pool notin (spot)", ("cpu-1", "od-1")),
        ("gpu", ("od-1", "spot-1", "spot-2")),
        ("!gpu", ("cpu-1",)),
        ("karpenter.sh/nodepool", ("cpu-1",)),
        ("pool in (spot,on-demand),zone=a", ("od-1", "spot-2")),
        ("zone in (a),pool!=spot , gpu", ("od-1",)),
        ("gpu=", ("od-1", "spot-1", "spot-2")),
        ("", ("cpu-1", "od-1", "spot-1", "spot-2")),
        ("pool=none", ()),
    ],
)
def test_selectors(selector: str, names: tuple[str, ...]) -> None:
    assert matching_nodes(FLEET, selector) == names


@pytest.mark.parametrize(
    "selector", ["pool=a b", "pool in ()", "pool in spot", "=spot", "pool=spot,,gpu", "a>1", "pool=spot,"]
)
def test_a_selector_that_cannot_be_read_is_bad_input(selector: str) -> None:
    with pytest.raises(BadInput, match="cannot read"):
        parse_selector(selector)


def test_same_seed_same_nodes_whatever_the_order_of_the_fleet() -> None:
    picks = {pick_nodes(fleet, "gpu", 2, Random("7:x")) for fleet in (FLEET, FLEET[::-1])}
    assert len(picks) == 1


def test_never_a_node_twice_and_every_node_in_its_turn() -> None:
    picks = [pick_nodes(FLEET, "gpu", 3, Random(seed)) for seed in range(20)]
    assert all(sorted(pick) == ["od-1", "spot-1", "spot-2"] for pick in picks)
    assert {pick[0] for pick in picks} == {"od-1", "spot-1", "spot-2"}


def test_too_few_says_how_many_of_how_many() -> None:
    with pytest.raises(BadInput, match=r"3 wanted, but 2 of 4 nodes match 'pool=spot' \(spot-1, spot-2\)"):
        pick_nodes(FLEET, "pool=spot", 3, Random(1))
    with pytest.raises(BadInput, match="1 wanted, but 0 of 4 nodes match"):
        pick_nodes(FLEET, "pool=none", 1, Random(1))


def test_a_count_below_one_is_bad_input() -> None:
    with pytest.raises(BadInput, match="count is 0"):
        pick_nodes(FLEET, "gpu", 0, Random(1))
