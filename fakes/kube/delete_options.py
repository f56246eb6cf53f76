"""DeleteOptions: of a body, of a query, and what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fakes.kube.schema.build import type_of
from fakes.kube.schema.model import Reader
from fakes.kube.schema.scalars import Mismatch
from fakes.kube.status import bad_option, bad_request, bad_value, unsupported
from harness.kube.port import Json

_POLICIES = ("Foreground", "Background", "Orphan")
NO_KIND = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    grace_s: int | None = None
    uid: str | None = None
    version: str | None = None
    propagation: str | None = None
    dry_run: bool = False


def of_body(body: Any) -> DeleteOptions:
    """Raises 400 or 422 for what cannot be meant."""
    if not isinstance(body, dict):
        said = "array" if isinstance(body, list) else "string" if isinstance(body, str) else "number"
        text = f"json parse error: json: cannot unmarshal {said} into Go value of type {NO_KIND}"
        raise bad_request(f"couldn't get version/kind; {text}")
    kind, version = body.get("kind", "DeleteOptions"), body.get("apiVersion", "v1")
    if kind != "DeleteOptions":
        scheme = 'in scheme "pkg/runtime/scheme.go:111"'
        raise bad_request(f'no kind "{kind}" is registered for version "{version}" {scheme}')
    try:
        raw: Json = type_of("meta/v1.DeleteOptions").inspect(body, "", Reader())
    except Mismatch as e:
        raise bad_request(str(e)) from None
    policy, orphan = raw.get("propagationPolicy"), raw.get("orphanDependents")
    if policy is not None and orphan is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        raise bad_option("DeleteOptions", bad_value("propagationPolicy", policy, text))
    if policy is not None and policy not in _POLICIES:
        raise bad_option("DeleteOptions", unsupported("propagationPolicy", policy, [*_POLICIES, "nil"]))
    dry_run = raw.get("dryRun") or []
    if any(value != "All" for value in dry_run):
        raise bad_option("DeleteOptions", unsupported("dryRun", dry_run, ["All"]))
    conditions = raw.get("preconditions") or {}
    propagation = policy or ("Orphan" if orphan else "Background" if orphan is False else None)
    return DeleteOptions(
        raw.get("gracePeriodSeconds"),
        conditions.get("uid"),
        conditions.get("resourceVersion"),
        propagation,
        bool(dry_run),
    )
