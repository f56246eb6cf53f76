"""Label and field selectors as clients write them."""

from __future__ import annotations

import pytest

from fakes.kube.kinds import Kind, Kinds
from fakes.kube.selectors import field_predicate, label_matcher, match_label_selector
from harness.kube import port
from harness.kube.port import Json

LABELS = {"app": "llm", "tier": "gpu", "karpenter.sh/capacity-type": "spot"}


def kind_of(resource: port.Resource) -> Kind:
    found = Kinds().find(resource)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("app=llm", True),
        ("app==llm", True),
        ("app=other", False),
        ("app!=llm", False),
        ("missing!=x", True),
        ("app in (llm, web)", True),
        ("app in (web)", False),
        ("app notin (web)", True),
        ("missing notin (web)", True),
        ("karpenter.sh/capacity-type", True),
        ("!missing", True),
        ("!app", False),
        ("app=llm,tier in (gpu,cpu),!missing", True),
        ("app=llm,tier=cpu", False),
    ],
)
def test_label_selectors(selector: str, matches: bool) -> None:
    matcher = label_matcher(selector)
    assert matcher is not None
    assert matcher(LABELS) is matches


def test_an_empty_selector_matches_everything() -> None:
    assert label_matcher("  ") is None


@pytest.mark.parametrize("selector", ["app in llm", "a=b=c", "(", "=x", "a in (b", "app in (x)y", ","])
def test_what_cannot_be_read_is_a_bad_request(selector: str) -> None:
    with pytest.raises(port.Invalid) as refused:
        label_matcher(selector)
    assert refused.value.status == 400


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "llm"}}, True),
        ({"matchLabels": {"app": "x"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["llm"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["llm"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_selector_objects(selector: Json | None, matches: bool) -> None:
    assert match_label_selector(selector, LABELS) is matches


POD: Json = {
    "metadata": {"name": "p", "namespace": "inference"},
    "spec": {"nodeName": "n1"},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("metadata.name=p", True),
        ("metadata.namespace!=inference", False),
        ("spec.nodeName=n1", True),
        ("spec.nodeName=", False),
        ("spec.nodeName!=n1", False),
        ("status.phase!=Succeeded,status.phase!=Failed", True),
        ("status.phase=Running,spec.nodeName=n2", False),
    ],
)
def test_field_selectors(selector: str, matches: bool) -> None:
    predicate = field_predicate(kind_of(port.POD), selector)
    assert predicate is not None
    assert predicate(POD) is matches


def test_fields_of_events() -> None:
    event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Node", "name": "n1"}, "reason": "SpotInterrupted"}
    predicate = field_predicate(
        kind_of(port.EVENT), "involvedObject.kind=Node,involvedObject.name=n1,reason=SpotInterrupted"
    )
    assert predicate is not None
    assert predicate(event)


@pytest.mark.parametrize("selector", ["spec.image=x", "nonsense", "metadata.name"])
def test_unknown_fields_are_a_bad_request(selector: str) -> None:
    with pytest.raises(port.Invalid) as refused:
        field_predicate(kind_of(port.POD), selector)
    assert refused.value.status == 400
