"""The three patches, each on the cases in which they differ."""

from __future__ import annotations

from typing import Any

import pytest

from fakes.kube.codec import clone
from fakes.kube.patch import json_patch, merge_patch, strategic_patch
from fakes.kube.schema.build import type_of
from harness.kube import port
from harness.kube.port import Json

POD: Json = {
    "metadata": {"name": "p", "finalizers": ["a"]},
    "spec": {
        "containers": [
            {"name": "c", "image": "x:1", "env": [{"name": "A", "value": "1"}]},
            {"name": "d", "image": "y"},
        ],
        "tolerations": [{"key": "t"}],
    },
    "status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "PodScheduled", "status": "True"}]},
}


def test_merge_replaces_lists_and_drops_nulls() -> None:
    patched = merge_patch(
        POD, {"spec": {"containers": [{"name": "e"}], "tolerations": None}, "new": {"a": {"b": None}}}
    )
    assert patched["spec"] == {"containers": [{"name": "e"}]}
    assert patched["new"] == {"a": {}}
    assert patched["status"] == POD["status"]


def test_strategic_merges_by_key() -> None:
    patch = {
        "spec": {"containers": [{"name": "c", "env": [{"name": "B", "value": "2"}]}], "tolerations": [{"key": "u"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "DisruptionTarget", "status": "True"}]},
        "metadata": {"finalizers": ["b"]},
    }
    before = clone(POD)
    patched = strategic_patch(POD, patch, type_of("core/v1.Pod"))
    assert before == POD, "the patched document is a new one"
    assert patched["spec"]["containers"][0] == {
        "name": "c",
        "image": "x:1",
        "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}],
    }
    assert patched["spec"]["tolerations"] == [{"key": "u"}], "an atomic list is replaced"
    assert [(c["type"], c["status"]) for c in patched["status"]["conditions"]] == [
        ("Ready", "True"),
        ("DisruptionTarget", "True"),
        ("PodScheduled", "True"),
    ], "what the patch names comes first where the old order does not tell"
    assert patched["metadata"]["finalizers"] == ["b", "a"]


def test_a_strategic_patch_makes_nothing_new_of_what_it_does_not_change() -> None:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True", "reason": None}]
    patched = strategic_patch(POD, {"status": {"conditions": conditions}}, type_of("core/v1.Pod"))
    before, after = POD["status"]["conditions"], patched["status"]["conditions"]
    assert (after[0], before[0]) == ({"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"})
    assert after[1] is before[1]
    assert patched["spec"] is POD["spec"]
    counted = strategic_patch({"a": 1}, {"a": True}, type_of("core/v1.Pod"))
    assert counted["a"] is True, "which is another value, though Python says 1 == True"


def test_strategic_directives() -> None:
    patched = strategic_patch(
        POD,
        {
            "spec": {"containers": [{"name": "d", "$patch": "delete"}, {"name": "c", "env": [{"$patch": "replace"}]}]},
            "metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]},
            "status": {"$patch": "replace", "phase": "Running"},
        },
        type_of("core/v1.Pod"),
    )
    assert patched["spec"]["containers"] == [{"name": "c", "image": "x:1", "env": []}]
    assert patched["metadata"]["finalizers"] == []
    assert patched["status"] == {"phase": "Running"}


def test_strategic_retain_keys() -> None:
    deployment = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic_patch(deployment, patch, type_of("apps/v1.Deployment"))["spec"]["strategy"] == {"type": "Recreate"}


def test_ports_merge_by_the_key_of_their_kind() -> None:
    service = {"spec": {"ports": [{"port": 80, "name": "a"}]}}
    assert strategic_patch(service, {"spec": {"ports": [{"port": 80, "name": "b"}]}}, type_of("core/v1.Service"))[
        "spec"
    ]["ports"] == [{"port": 80, "name": "b"}]
    slices = {"ports": [{"port": 80}]}
    assert strategic_patch(slices, {"ports": [{"port": 81}]}, type_of("discovery/v1.EndpointSlice")) == {
        "ports": [{"port": 81}]
    }


def test_taints_are_replaced_as_a_list() -> None:
    node = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule"}]}}
    patch = {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}}
    assert strategic_patch(node, patch, type_of("core/v1.Node")) == patch, "kubectl sends the whole list to remove one"


def test_a_list_entry_without_its_key_is_a_bad_request() -> None:
    with pytest.raises(port.Invalid):
        strategic_patch(POD, {"spec": {"containers": [{"image": "z"}]}}, type_of("core/v1.Pod"))


DOCUMENT: Json = {"a": {"b": [1, 2]}, "c/d": 1}


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        ([{"op": "add", "path": "/a/b/-", "value": 3}], {"a": {"b": [1, 2, 3]}, "c/d": 1}),
        ([{"op": "add", "path": "/a/b/0", "value": 0}], {"a": {"b": [0, 1, 2]}, "c/d": 1}),
        ([{"op": "replace", "path": "/c~1d", "value": 2}], {"a": {"b": [1, 2]}, "c/d": 2}),
        ([{"op": "remove", "path": "/a/b/1"}], {"a": {"b": [1]}, "c/d": 1}),
        ([{"op": "test", "path": "/a/b/0", "value": 1}, {"op": "remove", "path": "/a"}], {"c/d": 1}),
        ([{"op": "move", "from": "/a/b", "path": "/e"}], {"a": {}, "c/d": 1, "e": [1, 2]}),
        ([{"op": "copy", "from": "/c~1d", "path": "/e"}], {"a": {"b": [1, 2]}, "c/d": 1, "e": 1}),
        ([{"op": "add", "path": "", "value": {"whole": 1}}], {"whole": 1}),
    ],
)
def test_json_patch(operations: list[Any], result: Json) -> None:
    assert json_patch(DOCUMENT, operations) == result
    assert DOCUMENT == {"a": {"b": [1, 2]}, "c/d": 1}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/c~1d", "value": 5},
        {"op": "remove", "path": "/missing"},
        {"op": "add", "path": "/a/b/9", "value": 1},
        {"op": "add", "path": "/c~1d/x", "value": 1},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "/x"},
        {"op": "dance", "path": "/x"},
        {"op": "add", "path": "x", "value": 1},
        {"path": 5},
        "no object",
    ],
)
def test_json_patch_that_does_not_fit(operation: Any) -> None:
    with pytest.raises(port.Invalid):
        json_patch(DOCUMENT, [operation])
