"""Server-side apply, as far as it is here: fields are merged in, and the manager is recorded.

Ownership of single fields is not tracked, so an apply that leaves a field out does not remove it, and two appliers
never conflict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakes.kube.api import Api, Write
from fakes.kube.kinds import Kind
from fakes.kube.status import bad_request
from fakes.kube.store import Stored
from harness.kube.port import NotFound, PatchType


def apply(
    api: Api,
    kind: Kind,
    namespace: str | None,
    name: str,
    body: Any,
    query: Mapping[str, str],
    subresource: str | None,
) -> tuple[Stored, bool]:
    """The object, and whether it was created."""
    manager = query.get("fieldManager")
    if not manager:
        raise bad_request(
            "PatchOptions.meta.k8s.io is invalid: fieldManager: Required value: is required for apply patch"
        )
    if not isinstance(body, dict) or not isinstance(body.get("metadata", {}), dict):
        raise bad_request("the body of an apply is an object with metadata")
    if not body.get("kind") or not body.get("apiVersion"):
        raise bad_request("the body of an apply must state apiVersion and kind")
    if body.get("metadata", {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    write = Write(manager, query.get("dryRun") == "All", "Apply")
    type = PatchType.MERGE if kind.custom else PatchType.STRATEGIC
    try:
        return api.patch(kind.resource, namespace, name, body, type, write, subresource), False
    except NotFound:
        if subresource:
            raise
    body = body | {"metadata": body.get("metadata", {}) | {"name": name}}
    return api.create(kind.resource, namespace, body, write), True
