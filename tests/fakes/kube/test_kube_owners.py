"""Sets of fields, managedFields after updates, and server-side apply between two appliers."""

from __future__ import annotations

from typing import Any

import pytest

from fakes.kube import LocalKube, Store
from fakes.kube.api import Api, Write
from fakes.kube.field_trees import KNOWN, difference, interned, intersection, paths, union
from fakes.kube.fieldsets import born, compare, field_set
from fakes.kube.schema.build import type_of
from harness.kube import port
from harness.kube.port import Conflict, Json

pytestmark = pytest.mark.looptime
DEPLOYMENT = type_of("apps/v1.Deployment")


def test_sets() -> None:
    one, other = {"f:a": {}, "f:b": {".": {}, "f:c": {}}}, {"f:b": {"f:c": {}, "f:d": {}}}
    assert union(one, other) == {"f:a": {}, "f:b": {".": {}, "f:c": {}, "f:d": {}}}
    assert difference(one, other) == {"f:a": {}, "f:b": {}}
    assert intersection(one, other) == {"f:b": {"f:c": {}}}
    assert difference(one, {"f:x": {}}) is one, "nothing taken away, nothing made"
    assert difference(one, one) is None


def test_equal_sets_are_one_and_what_becomes_of_them_is_looked_up() -> None:
    one, other = interned({"f:a": {}, "f:b": {"f:c": {}}}), interned({"f:b": {"f:c": {}}})
    assert interned({"f:a": {}, "f:b": {"f:c": {}}}) is one
    assert interned({"f:b": {"f:c": {}}, "f:a": {}}) is not one, "the order is part of what is written"
    assert difference(one, other) is difference(one, other)
    assert difference(one, other) is interned({"f:a": {}})
    own = {"f:status": {"f:phase": {}, "f:podIPs": {'k:{"ip":"10.1.1.1"}': {}}, "f:x": {"f:y": {}}}}
    first, second = interned(own), interned(own)
    assert first == second == own
    assert first is not second, "nobody else has this address"
    assert first["f:status"]["f:x"] is second["f:status"]["f:x"], "and many the rest"
    KNOWN.forget()
    assert difference(one, other) == {"f:a": {}}
    assert union(one, interned({"f:b": {"f:d": {}}})) == {"f:a": {}, "f:b": {"f:c": {}, "f:d": {}}}


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("core/v1.Pod", {"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"containers": [{"name": "c"}]}}),
        ("core/v1.Pod", {"metadata": {"annotations": {}, "finalizers": ["f"]}, "status": {"phase": "Failed"}}),
        ("core/v1.Event", {"count": 2, "reportingComponent": "c", "eventTime": None, "source": {"component": "c"}}),
        ("core/v1.Event", {"involvedObject": {"name": "p", "uid": "u"}, "firstTimestamp": "2026-01-01T00:00:00Z"}),
        ("apps/v1.Deployment", {"spec": {"replicas": 0, "strategy": {"rollingUpdate": {"maxSurge": 0}}}}),
        ("coordination/v1.Lease", {"spec": {"holderIdentity": "h"}}),
        ("core/v1.ConfigMap", {"data": {"k": "v", "l": ""}}),
        ("core/v1.ConfigMap", {}),
    ],
)
def test_a_new_object_is_one_compared_with_nothing(name: str, body: Json) -> None:
    kind = type_of(name)
    value = kind.read(body)
    expected = compare(kind, kind.zero(), value)
    for _ in range(2):  # worked out, and looked up
        assert born(kind, value) == expected


def test_paths_as_people_write_them() -> None:
    tree = {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}}}}, "f:finalizers": {'v:"x"': {}}}
    assert paths(tree) == ['.finalizers[="x"]', '.spec.containers[name="c"]', '.spec.containers[name="c"].image']


def test_changes_go_by_key_and_atomic_parts_as_one() -> None:
    def body(image: str, key: str) -> Json:
        spec = {"containers": [{"name": "c", "image": image}], "tolerations": [{"key": key}]}
        return DEPLOYMENT.read({"spec": {"template": {"spec": spec}}})

    changed, removed = compare(DEPLOYMENT, body("x", "a"), body("y", "b"))
    pods = {"f:containers": {'k:{"name":"c"}': {"f:image": {}}}, "f:tolerations": {}}
    assert (changed, removed) == ({"f:spec": {"f:template": {"f:spec": pods}}}, None)


def test_an_applied_object_claims_its_leaves() -> None:
    claimed = field_set(
        DEPLOYMENT, {"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1, "selector": {"matchLabels": {}}}}
    )
    assert claimed == {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:replicas": {}, "f:selector": {}}}


def managers(obj: Json) -> dict[tuple[str, str, str], Any]:
    entries = obj["metadata"].get("managedFields") or []
    return {(e["manager"], e["operation"], e.get("subresource", "")): e["fieldsV1"] for e in entries}


async def test_the_last_writer_of_a_field_owns_it(store: Store) -> None:
    one, two = LocalKube(store, "one"), LocalKube(store, "two")
    await one.create(port.CONFIG_MAP, {"metadata": {"name": "a"}, "data": {"k": "1", "l": "1"}}, "default")
    got = await two.patch(port.CONFIG_MAP, "a", {"data": {"k": "2"}}, "default")
    assert managers(got) == {
        ("one", "Update", ""): {"f:data": {".": {}, "f:l": {}}},
        ("two", "Update", ""): {"f:data": {"f:k": {}}},
    }
    got = await two.patch(port.CONFIG_MAP, "a", {"data": {"l": None}}, "default")
    assert managers(got)["one", "Update", ""] == {"f:data": {}}


async def test_a_status_has_an_owner_of_its_own(store: Store) -> None:
    kube = LocalKube(store, "kubelet")
    await kube.create(
        port.POD, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}, "default"
    )
    got = await kube.patch(port.POD, "p", {"status": {"phase": "Running"}}, "default", subresource="status")
    assert managers(got)["kubelet", "Update", "status"] == {"f:status": {"f:phase": {}}}
    assert "f:status" not in managers(got)["kubelet", "Update", ""]


def applied(api: Api, manager: str, data: Json, *, force: bool = False) -> Json:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}
    stored, _ = api.apply(port.CONFIG_MAP, "default", "a", body, Write(manager, operation="Apply"), force=force)
    return stored.object


async def test_what_is_no_longer_applied_goes_unless_another_owns_it(store: Store) -> None:
    api = Api(store)
    applied(api, "alice", {"k": "1", "l": "1", "m": "1"})
    applied(api, "bob", {"l": "1"})
    got = applied(api, "alice", {"k": "1"})
    assert got["data"] == {"k": "1", "l": "1"}


async def test_appliers_conflict_by_value_and_force_settles_it(store: Store) -> None:
    api = Api(store)
    applied(api, "alice", {"k": "1"})
    with pytest.raises(Conflict) as refused:
        applied(api, "bob", {"k": "2"})
    (cause,) = refused.value.body["details"]["causes"]
    assert cause == {"reason": "FieldManagerConflict", "message": 'conflict with "alice"', "field": ".data.k"}
    got = applied(api, "bob", {"k": "2"}, force=True)
    assert managers(got) == {("bob", "Apply", ""): {"f:data": {"f:k": {}}}}


async def test_an_apply_that_changes_nothing_is_no_revision(store: Store) -> None:
    api = Api(store)
    applied(api, "alice", {"k": "1"})
    before = store.revision
    applied(api, "alice", {"k": "1"})
    assert store.revision == before
