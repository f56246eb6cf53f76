"""Label and field selectors, parsed once into a predicate on objects."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from fakes.kube.kinds import Kind
from fakes.kube.label_parser import Labels, parse
from fakes.kube.status import bad_request
from harness.kube import port
from harness.kube.port import Json, Resource

Predicate = Callable[[Json], bool]


def label_predicate(selector: str) -> Predicate | None:
    """None when everything matches."""
    matches = label_matcher(selector)
    if matches is None:
        return None
    return lambda obj: matches(obj["metadata"].get("labels") or {})


def label_matcher(selector: str) -> Callable[[Labels], bool] | None:
    terms = [r.matcher() for r in parse(selector)] if selector.strip() else []
    if len(terms) == 1:
        return terms[0]
    return (lambda labels: all(term(labels) for term in terms)) if terms else None


def match_label_selector(selector: Json | None, labels: Labels) -> bool:
    """A metav1.LabelSelector object. None selects nothing, an empty one everything."""
    if selector is None:
        return False
    if not match_labels(selector.get("matchLabels") or {}, labels):
        return False
    return all(_match_expression(e, labels) for e in selector.get("matchExpressions") or ())


def match_labels(wanted: Labels, labels: Labels) -> bool:
    return wanted.items() <= labels.items()


def _match_expression(expression: Json, labels: Labels) -> bool:
    key, values = expression.get("key", ""), expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False


_FIELDS: dict[Resource, dict[str, tuple[str, ...]]] = {
    port.POD: {
        "spec.nodeName": ("spec", "nodeName"),
        "spec.restartPolicy": ("spec", "restartPolicy"),
        "spec.schedulerName": ("spec", "schedulerName"),
        "spec.serviceAccountName": ("spec", "serviceAccountName"),
        "status.phase": ("status", "phase"),
        "status.podIP": ("status", "podIP"),
        "status.nominatedNodeName": ("status", "nominatedNodeName"),
    },
    port.NODE: {"spec.unschedulable": ("spec", "unschedulable")},
    port.NAMESPACE: {"status.phase": ("status", "phase")},
    port.SECRET: {"type": ("type",)},
    port.REPLICA_SET: {"status.replicas": ("status", "replicas")},
    port.EVENT: {
        **{
            f"involvedObject.{f}": ("involvedObject", f)
            for f in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        },
        "reason": ("reason",),
        "type": ("type",),
        "reportingComponent": ("reportingComponent",),
        "source": ("source", "component"),
    },
}
_META = {"metadata.name": ("metadata", "name"), "metadata.namespace": ("metadata", "namespace")}


def field_predicate(kind: Kind, selector: str) -> Predicate | None:
    if not selector.strip():
        return None
    more = _FIELDS.get(kind.view.of if kind.view else kind.resource, {})
    known = _META | more
    terms: list[Predicate] = []
    for part in selector.split(","):
        found = re.match(r"^\s*([^\s!=]+)\s*(==|=|!=)\s*(.*?)\s*$", part)
        if not found:
            raise bad_request(f"invalid selector: '{selector}'; can't understand '{part}'")
        field, operator, value = found.groups()
        if field not in known:
            if more or kind.custom:
                raise bad_request(f"field label not supported: {field}")
            text = f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            raise bad_request(text)
        terms.append(_field_term(known[field], value, operator != "!="))
    return lambda obj: all(term(obj) for term in terms)


def _field_term(path: tuple[str, ...], value: str, equal: bool) -> Predicate:
    def term(obj: Json) -> bool:
        return (_text(obj, path) == value) is equal

    return term


def _text(obj: Json, path: tuple[str, ...]) -> str:
    found: Any = obj
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    if path == ("spec", "unschedulable"):
        return "true" if found else "false"
    return "" if found is None else str(found)
