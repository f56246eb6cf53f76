"""Which fields a kind from a CRD has, from its OpenAPI schema.

A shape is None for what may hold anything, a text for a type of Kubernetes' own (``core/v1.PodTemplateSpec``),
``[shape]`` for a list, ``{"*": shape}`` for a map, and ``{"field": shape, …}`` for all else.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

Shape = Any
ANY_KEY = "*"
POD_TEMPLATE, POD_SPEC, METADATA = "core/v1.PodTemplateSpec", "core/v1.PodSpec", "meta/v1.ObjectMeta"


def shape_of(schema: object) -> Shape:
    """Of a structural schema (apiextensions.k8s.io/v1). What is no such schema may hold anything."""
    if not isinstance(schema, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return None
    if isinstance(schema.get("items"), dict):
        return [shape_of(schema["items"])]
    fields, more = schema.get("properties"), schema.get("additionalProperties")
    if isinstance(fields, dict) and fields:
        if "containers" in fields and "restartPolicy" in fields:
            return POD_SPEC
        shapes = {str(name): shape_of(inner) for name, inner in fields.items()}
        return POD_TEMPLATE if shapes.get("spec") == POD_SPEC and shapes.keys() == {"metadata", "spec"} else shapes
    return {ANY_KEY: shape_of(more)} if isinstance(more, dict) else None


@cache
def known_shapes() -> dict[str, Shape]:
    """By ``group/version.Kind``: Karpenter v1.15, KEDA (August 2026), LeaderWorkerSet v0.8, JobSet v0.11, the inference
    extension v1.2 and the Gateway API v1.5, coscheduling v0.34, Kueue v0.17."""
    found: dict[str, Shape] = json.loads(resources.files("harness.inspection.crds").joinpath("fields.json").read_text())
    return found
