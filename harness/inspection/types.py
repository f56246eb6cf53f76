"""The types of kinds, for looking at which fields a manifest may have: Kubernetes' own, and those of CRDs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from fakes.kube.schema.build import type_of
from fakes.kube.schema.model import Any_, Field, List, Map, Scalar, Struct, Type
from fakes.kube.schema.quantity import canonical
from fakes.kube.schema.raw import full_name
from fakes.kube.schema.scalars import Mismatch, Trouble
from harness.inspection.crds.shapes import ANY_KEY, METADATA, POD_TEMPLATE, Shape, known_shapes
from harness.inspection.seen import dotted
from harness.spec.document import KeyPath, nearest
from harness.spec.mistakes import show

_WORDS = {
    "bool": "true or false", "int32": "a whole number", "int64": "a whole number", "float64": "a number",
    "string": "a text", "resource.Quantity": "a quantity such as 500m or 32Gi",
    "[]uint8": "base64",
    "intstr.IntOrString": "a whole number, or a text such as 25%", "v1.Time": "a time such as 2026-01-31T12:00:00Z",
}  # fmt: skip
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Wrong:
    """Something of a manifest that its type does not take. ``parents``: the structs above it, outermost first."""

    at: KeyPath
    parents: tuple[tuple[KeyPath, Struct], ...]
    value: object
    wanted: str = ""
    """What would be right, of a value; empty for a field that is not known."""


def type_for(api_version: str, kind: str, shapes: Mapping[str, Shape]) -> Struct | None:
    """None for a kind whose fields are not known. ``shapes``: of CRDs that are at hand, before those we bring."""
    if name := full_name(api_version, kind):
        return type_of(name)
    key = f"{api_version}.{kind}"
    if key in shapes:
        return _root(shapes[key])
    return _known(key) if key in known_shapes() else None


@cache
def pod_template() -> Struct:
    return type_of(POD_TEMPLATE)


@cache
def _known(key: str) -> Struct:
    return _root(known_shapes()[key])


def _root(shape: Shape) -> Struct:
    """A kind of a CRD: its metadata is Kubernetes' own, whatever the CRD says."""
    found = Struct("object", False)
    text = type_of("core/v1.ConfigMap").fields["kind"].type
    found.fields = dict.fromkeys(("kind", "apiVersion"), _field("kind", text))
    for name, inner in shape.items() if isinstance(shape, dict) else ():
        if name not in ("kind", "apiVersion"):
            found.fields[name] = _field(name, _type(METADATA if name == "metadata" else inner))
    found.fields.setdefault("metadata", _field("metadata", _type(METADATA)))
    return found


def _type(shape: Shape) -> Type:
    if isinstance(shape, str):
        return type_of("core/v1.ConfigMap").fields["metadata"].type if shape == METADATA else type_of(shape)
    if isinstance(shape, list):
        return List("list", _type(shape[0]), {})
    if not isinstance(shape, dict):
        return _ANY
    if ANY_KEY in shape:
        return Map("map", _type(shape[ANY_KEY]))
    found = Struct("object", False)
    found.fields = {name: _field(name, _type(inner)) for name, inner in shape.items()}
    return found


def _field(name: str, type_: Type) -> Field:
    return Field(name, type_, True, False, False)


_ANY = Any_()


def as_written_back(amount: str) -> str:
    """A quantity as the API server answers it (``1000m`` is ``1``); what is none stays as it is."""
    try:
        return canonical(amount)
    except ValueError:
        return amount


def wrongs(type_: Type, value: object, at: KeyPath = ()) -> Iterator[Wrong]:
    """Everything below a value that its type does not take."""
    yield from _wrongs(type_, value, at, ())


def _wrongs(type_: Type, value: object, at: KeyPath, parents: tuple[tuple[KeyPath, Struct], ...]) -> Iterator[Wrong]:
    if value is None or isinstance(type_, Any_):
        return
    if isinstance(type_, Struct):
        if not isinstance(value, dict):
            yield Wrong(at, parents, value, "a mapping")
            return
        above = (*parents, (at, type_))
        for key, inner in value.items():
            known = type_.fields.get(key)
            if known is None:
                yield Wrong((*at, key), above, inner)
            else:
                yield from _wrongs(known.type, inner, (*at, key), above)
    elif isinstance(type_, Map):
        if not isinstance(value, dict):
            yield Wrong(at, parents, value, "a mapping")
            return
        for key, inner in value.items():
            yield from _wrongs(type_.element, inner, (*at, key), parents)
    elif isinstance(type_, List):
        if not isinstance(value, list):
            yield Wrong(at, parents, value, "a list")
            return
        for index, inner in enumerate(value):
            yield from _wrongs(type_.element, inner, (*at, index), parents)
    elif isinstance(type_, Scalar):
        try:
            type_.read(value)
        except (Mismatch, Trouble):
            wanted = _WORDS.get(type_.go) or ("a text" if isinstance(type_.zero(), str) else f"a value of {type_.go}")
            quoted = wanted == "a text" and isinstance(value, bool | int | float)
            yield Wrong(at, parents, value, f'{wanted}: "{show(value)}", in quotes' if quoted else wanted)


def belongs(wrong: Wrong) -> str:
    """Where an unknown field would be right: higher up, deeper down, or spelt in another way; empty for nowhere."""
    name = str(wrong.at[-1])
    here_at, here = wrong.parents[-1]
    near = nearest(name, here.fields)
    if near is not None and near.lower() == name.lower():
        return f"did you mean {near}?"
    for at, struct in reversed(wrong.parents[:-1]):
        if name in struct.fields:
            return f"it belongs to {_dotted(at) or 'the top'}, as {_dotted((*at, name))}"
    if (inner := _below(here, name, _DEEPEST)) is not None:
        return f"it belongs deeper, as {_dotted(here_at)}{'.' if here_at else ''}{inner}"
    for at, struct in reversed(wrong.parents[:-1]):
        if (inner := _below(struct, name, 2)) is not None:
            return f"it belongs elsewhere, as {_dotted(at)}{'.' if at else ''}{inner}"
    return f"did you mean {near}?" if near is not None else ""


def _below(struct: Struct, name: str, depth: int) -> str | None:
    """The nearest place of a field below a struct, as ``template.spec.nodeSelector``; the shallowest one wins."""
    waiting = _inner(struct, "", depth - 1)
    while waiting:
        path, type_, left = waiting.pop(0)
        while isinstance(type_, List | Map):
            path, type_ = f"{path}[]" if isinstance(type_, List) else f"{path}.*", type_.element
        if not isinstance(type_, Struct):
            continue
        if name in type_.fields:
            return f"{path}.{name}"
        if left > 0:
            waiting += _inner(type_, f"{path}.", left - 1)
    return None


def _inner(struct: Struct, before: str, left: int) -> list[tuple[str, Type, int]]:
    """The fields to look into; containers come before the rarer kinds of them, which have the same fields."""
    names = sorted((n for n in struct.fields if n != "status"), key=lambda n: n.startswith(("init", "ephemeral")))
    return [(f"{before}{name}", struct.fields[name].type, left) for name in names]


def _dotted(at: KeyPath) -> str:
    return dotted(at) or ""
