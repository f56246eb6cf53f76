"""What faults read of objects."""

from __future__ import annotations

from fakes.nodes.labels import OFFERING
from harness.faults.sight import OFFERING_LABEL, cloud_pool_of, pool_of


def test_a_node_is_of_the_pool_that_its_nodepool_ordered_it_from() -> None:
    node = {"metadata": {"labels": {"karpenter.sh/nodepool": "gpu", OFFERING: "elastic"}}}
    assert (OFFERING_LABEL, cloud_pool_of(node), pool_of(node)) == (OFFERING, "elastic", "gpu")
    assert cloud_pool_of({"metadata": {"labels": {"karpenter.sh/nodepool": "spot"}}}) == "spot"
