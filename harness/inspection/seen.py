"""One object of a cluster or of a manifest, where it stands, and how to look into it.

Manifests may hold anything, so nothing here trusts a shape: what is no mapping has no keys, and what is no list has
no items.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from harness.errors import Where
from harness.kube.port import Json
from harness.printable import line
from harness.selectors import Selector, selector_of
from harness.spec.document import Document, KeyPath

DEFAULT_NAMESPACE = "default"
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def dig(value: object, *path: str | int) -> Any:
    """The value at a path, None where it leads nowhere."""
    for part in path:
        if isinstance(value, dict) and isinstance(part, str):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return value


def mapping(value: object, *path: str | int) -> Json:
    found = dig(value, *path)
    return found if isinstance(found, dict) else {}


def items(value: object, *path: str | int) -> list[tuple[int, Json]]:
    """The mappings of a list, each with its index."""
    found = dig(value, *path)
    return [(i, item) for i, item in enumerate(found) if isinstance(item, dict)] if isinstance(found, list) else []


def text(value: object, *path: str | int) -> str:
    """A text, or what a number or a flag would be as one; empty for all else."""
    found = dig(value, *path)
    if isinstance(found, bool):
        return str(found).lower()
    return str(found) if isinstance(found, str | int | float) else ""


def texts(value: object, *path: str | int) -> list[str]:
    found = dig(value, *path)
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def whole(value: object, *path: str | int) -> int | None:
    found = dig(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def labels_of(value: object, *path: str | int) -> dict[str, str]:
    return {k: v for k, v in mapping(value, *path).items() if isinstance(k, str) and isinstance(v, str)}


def read_selector(raw: object) -> Selector | None:
    """A LabelSelector as an object carries it; None where it is none that the API server would take."""
    if raw is None:
        return selector_of(None)
    if not isinstance(raw, dict):
        return None
    labels = raw.get("matchLabels") or {}
    expressions = raw.get("matchExpressions") or []
    if not isinstance(labels, dict) or not isinstance(expressions, list):
        return None
    if not all(isinstance(v, str) for v in labels.values()):
        return None
    for expression in expressions:
        if not isinstance(expression, dict) or expression.get("operator") not in OPERATORS:
            return None
        values = expression.get("values") or []
        if not isinstance(expression.get("key"), str) or not isinstance(values, list):
            return None
        if not all(isinstance(v, str) for v in values):
            return None
    return selector_of(raw)


@dataclass(frozen=True, slots=True)
class Seen:
    """One object. ``document`` is the file's that it stands in, at ``base``; None for one that was read live."""

    data: Json
    document: Document | None = None
    base: KeyPath = ()
    home: str = DEFAULT_NAMESPACE
    """Where it goes when it names no namespace."""

    @property
    def kind(self) -> str:
        return text(self.data, "kind")

    @property
    def group(self) -> str:
        return text(self.data, "apiVersion").rpartition("/")[0]

    @property
    def api_version(self) -> str:
        return text(self.data, "apiVersion")

    @property
    def name(self) -> str:
        return text(self.data, "metadata", "name") or text(self.data, "metadata", "generateName")

    @property
    def namespace(self) -> str:
        """Of a namespaced object; of another one it means nothing."""
        return text(self.data, "metadata", "namespace") or self.home

    @property
    def labels(self) -> dict[str, str]:
        return labels_of(self.data, "metadata", "labels")

    @property
    def annotations(self) -> dict[str, str]:
        return labels_of(self.data, "metadata", "annotations")

    @property
    def document_file(self) -> str:
        return self.document.file if self.document else ""

    @property
    def ref(self) -> str:
        """``Kind/namespace/name``, or ``Kind/name`` where none is written."""
        written = text(self.data, "metadata", "namespace")
        return line("/".join(part for part in (self.kind, written, self.name) if part))

    def where(self, *at: str | int) -> Where:
        if self.document is not None:
            found = self.document.where((*self.base, *at))
            return Where(found.file, found.line, dotted(at))
        return Where(self.ref, None, dotted(at))

    def owner(self) -> Json:
        """The owner that controls it; empty for one that somebody made by hand."""
        return next((ref for _, ref in items(self.data, "metadata", "ownerReferences") if ref.get("controller")), {})


def dotted(at: Iterable[str | int]) -> str | None:
    """``spec.containers[0].image``: as the API server writes it."""
    found = ""
    for part in at:
        found += f"[{part}]" if isinstance(part, int) else f".{part}" if found else part
    return found or None
