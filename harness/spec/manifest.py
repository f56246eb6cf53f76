"""Manifests: Kubernetes objects in YAML, several to a file. Only what every object needs is checked here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.spec.document import read_documents
from harness.spec.mistakes import show


def load_manifest(path: Path) -> tuple[dict[str, Any], ...]:
    """The objects of a file, in its order. The API server judges the rest of them."""
    objects: list[dict[str, Any]] = []
    for document in read_documents(path):
        data = document.data
        if not isinstance(data, dict):
            raise document.mistake((), f"is {show(data)}, not a Kubernetes object")
        for key in ("apiVersion", "kind", "metadata"):
            if key not in data:
                raise document.mistake((), f"the object has no {key}", "is this a Kubernetes manifest?")
        metadata = data["metadata"]
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            raise document.mistake(("metadata", "name"), "the object has no name", "add metadata.name")
        objects.append(data)
    return tuple(objects)


def object_ref(obj: dict[str, Any]) -> str:
    """``Kind/namespace/name``, or ``Kind/name`` where the manifest names no namespace."""
    metadata = obj["metadata"]
    return "/".join(part for part in (obj["kind"], metadata.get("namespace"), metadata["name"]) if part)
