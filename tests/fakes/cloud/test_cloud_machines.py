from __future__ import annotations

from random import Random

import pytest

from fakes.cloud.cloud import Cloud, OutOfStock
from fakes.config import PoolConfig
from fakes.nodes.labels import instance_of
from fakes.timing import Timing


@pytest.mark.looptime
async def test_machines_that_are_there_already_are_given_in_order_and_again_unless_they_were_lost() -> None:
    pool = PoolConfig("spot", "spot", nodes=1, stock=3)
    names = {"spot": ["w1", "w2", "w3"]}
    cloud = Cloud((pool,), Timing(), Random(1), boot=lambda i: None, lost=lambda i: None, machines=names)
    cloud.start()
    assert [i.node for i in cloud.instances.values()] == ["w1"]
    cloud.terminate(cloud.launch("spot").id)
    assert cloud.next_name("spot") == "w3"  # one that was never used goes first
    cloud.launch("spot")
    assert cloud.next_name("spot") == "w2"
    cloud.power_off("i-w1")
    cloud.launch("spot")
    with pytest.raises(OutOfStock):  # what the cloud took away does not come back
        cloud.launch("spot")
    cloud.stop()


def test_a_node_of_kind_is_the_instance_of_its_container() -> None:
    assert instance_of("kind://docker/gpu-harness/gpu-harness-worker2") == "i-gpu-harness-worker2"
