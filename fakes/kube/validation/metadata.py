"""ObjectMeta: names, labels, annotations, owners, finalizers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fakes.kube.names import (
    label_key_problems,
    label_problems,
    label_value_problems,
    subdomain_problems,
)
from fakes.kube.status import Cause, bad_value, required, too_long
from harness.kube.port import Json

_ANNOTATIONS_MAX = 256 * 1024
_STANDARD_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})


def _namespace_problems(name: str) -> list[str]:
    """Of a namespace, in the words of its declarative rules."""
    if "." in name:
        return ["must not contain dots"]
    if len(name) > 63:
        return ["must be no more than 63 characters"]
    return label_problems(name)


_NAMES: dict[str, Callable[[str], list[str]]] = {"Namespace": _namespace_problems, "Service": label_problems}


def metadata(obj: Json) -> Iterator[Cause]:
    meta = obj["metadata"]
    problems_of = _NAMES.get(obj["kind"], subdomain_problems)
    if prefix := meta.get("generateName"):
        # What follows it is a letter or a digit, so a dash at its end is none at the end of the name.
        for problem in problems_of(prefix[:-1] + "a" if prefix.endswith("-") else prefix):
            yield bad_value("metadata.generateName", prefix, problem)
    for problem in problems_of(meta["name"]):
        yield bad_value("metadata.name", meta["name"], problem.replace(" bytes", " characters"))
    yield from labels_of(meta.get("labels") or {}, "metadata.labels")
    yield from _annotations(meta.get("annotations") or {})
    yield from _owners(meta.get("ownerReferences") or [])
    for i, name in enumerate(meta.get("finalizers") or []):
        for problem in label_key_problems(name):
            yield bad_value(f"metadata.finalizers[{i}]", name, problem)
        if "/" not in name and name not in _STANDARD_FINALIZERS and not label_key_problems(name):
            text = "name is neither a standard finalizer name nor is it fully qualified"
            yield bad_value(f"metadata.finalizers[{i}]", name, text)


def _annotations(annotations: Json) -> Iterator[Cause]:
    for key in annotations:
        for problem in label_key_problems(key.lower()):
            yield bad_value("metadata.annotations", key, problem)
    if (
        sum(len(k.encode(errors="replace")) + len(v.encode(errors="replace")) for k, v in annotations.items())
        > _ANNOTATIONS_MAX
    ):
        yield too_long("metadata.annotations", "", _ANNOTATIONS_MAX)


def _owners(owners: list[Json]) -> Iterator[Cause]:
    for i, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{i}]"
        if not owner.get("apiVersion"):
            yield bad_value(f"{path}.apiVersion", "", "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not owner.get(field):
                yield required(f"{path}.{field}", "must not be empty")
    controllers = [o for o in owners if o.get("controller")]
    if len(controllers) > 1:
        names = " and ".join(f"{o.get('kind')}/{o.get('name')}" for o in controllers[:2])
        text = f'Only one reference can have Controller set to true. Found "true" in references for {names}'
        yield bad_value("metadata.ownerReferences", owners, text)


def labels_of(labels: Json, path: str) -> Iterator[Cause]:
    for key, value in sorted(labels.items()):
        for problem in label_key_problems(key):
            yield bad_value(path, key, problem)
        for problem in label_value_problems(value):
            yield bad_value(path, value, problem)


def selector_of(selector: Json, path: str) -> Iterator[Cause]:
    yield from labels_of(selector.get("matchLabels") or {}, f"{path}.matchLabels")
    for i, expression in enumerate(selector.get("matchExpressions") or []):
        at, operator, values = f"{path}.matchExpressions[{i}]", expression.get("operator"), expression.get("values")
        if operator in ("In", "NotIn"):
            if not values:
                yield required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield Cause(f"{at}.values", "FieldValueForbidden", f"Forbidden: {text}")
        else:
            yield bad_value(f"{at}.operator", operator or "", "not a valid selector operator")
        for problem in label_key_problems(expression.get("key", "")):
            yield bad_value(f"{at}.key", expression.get("key", ""), problem)
