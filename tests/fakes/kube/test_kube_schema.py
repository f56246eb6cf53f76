"""Reading bodies by the Go types: canonical values, what is left out, what is always there, and Go's own words."""

from __future__ import annotations

from typing import Any

import pytest

from fakes.kube.schema import quantity
from fakes.kube.schema.build import custom_type, type_of
from fakes.kube.schema.model import Reader
from fakes.kube.schema.scalars import Mismatch, Trouble

POD = type_of("core/v1.Pod")


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("1000m", "1"), ("0.5", "500m"), ("2048Mi", "2Gi"), ("1.5Gi", "1536Mi"), ("1024", "1024"), ("1000k", "1M"),
        ("1e3", "1e3"), ("0.1n", "1n"), ("0", "0"), ("-5", "-5"), ("1000Ki", "1000Ki"), ("12E", "9223372036854775807"),
    ],
)  # fmt: skip
def test_quantities(written: str, canonical: str) -> None:
    assert quantity.canonical(written) == canonical
    assert quantity.number(written) == pytest.approx(quantity.number(canonical)) or written in ("0.1n", "12E")


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1KiB", "--1", "1e999"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        quantity.canonical(text)


def test_zero_values_go_and_structs_stay() -> None:
    body = {
        "metadata": {"name": "a", "labels": {}},
        "spec": {"containers": [{"name": "c", "image": ""}], "hostNetwork": False},
    }
    assert POD.read(body) == {
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "resources": {}}]},
        "status": {},
    }


def test_a_pointer_keeps_its_zero_and_null_is_absent() -> None:
    deployment = type_of("apps/v1.Deployment").read({"spec": {"replicas": 0, "paused": False, "selector": None}})
    assert deployment["spec"]["replicas"] == 0
    assert deployment["spec"]["selector"] is None, "a field without omitempty is written even when it is null"
    assert "paused" not in deployment["spec"]


def test_times_are_utc_and_whole_seconds() -> None:
    read = POD.read({"metadata": {"deletionTimestamp": "2026-01-01T01:00:00.5+01:00"}})
    assert read["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"spec": "x"}, "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec"),
        (
            {"spec": {"containers": [{"image": 5}]}},
            "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
        ),
        (
            {"spec": {"terminationGracePeriodSeconds": 1.5}},
            "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.terminationGracePeriodSeconds",
        ),
        ({"metadata": {"creationTimestamp": "soon"}}, 'parsing time "soon" as "2006-01-02T15:04:05Z07:00"'),
    ],
)
def test_mismatches_in_the_words_of_go(body: Any, words: str) -> None:
    with pytest.raises((Trouble, Mismatch)):
        POD.read(body)
    with pytest.raises(Mismatch) as said:
        POD.inspect(body, "", Reader())
    assert words in str(said.value)


def test_unknown_fields_are_dropped_and_named() -> None:
    reader = Reader()
    read = POD.inspect({"spec": {"containers": [{"name": "c", "imagee": "x"}], "more": 1}}, "", reader)
    assert reader.unknown == ["spec.containers[0].imagee", "spec.more"]
    assert "more" not in read["spec"]


def test_custom_kinds_keep_whatever_is_written() -> None:
    body = {"metadata": {"name": "a", "labels": {}}, "spec": {"a": 0, "b": [{}]}, "top": ""}
    assert custom_type("Thing").read(body) == {"metadata": {"name": "a"}, "spec": {"a": 0, "b": [{}]}, "top": ""}
