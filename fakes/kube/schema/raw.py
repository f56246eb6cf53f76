"""``types.json`` as it is, and which of its types a version and kind mean."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

_GROUPS = {
    "": "core",
    "coordination.k8s.io": "coordination",
    "discovery.k8s.io": "discovery",
    "events.k8s.io": "events",
    "networking.k8s.io": "networking",
    "resource.k8s.io": "resource",
    "scheduling.k8s.io": "scheduling",
    "authorization.k8s.io": "authorization",
    "authentication.k8s.io": "authentication",
    "apiextensions.k8s.io": "apiextensions",
}


@cache
def raw_types() -> dict[str, Any]:
    text = resources.files("fakes.kube.schema").joinpath("types.json").read_text()
    found: dict[str, Any] = json.loads(text)["types"]
    return found


def full_name(api_version: str, kind: str) -> str | None:
    """``core/v1.Pod`` for v1 and Pod; None for what is not here."""
    group, _, version = api_version.rpartition("/")
    if kind == "DeleteOptions":
        return "meta/v1.DeleteOptions"
    name = f"{_GROUPS.get(group, group)}/{version}.{kind}"
    return name if name in raw_types() else None
