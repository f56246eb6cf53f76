"""Reviews: may I, and who am I. Everybody may do everything here; clients only need the shape of the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fakes.kube.status import bad_request
from harness.kube.port import Json


def _access(body: Json) -> Json:
    return {"allowed": True, "reason": "the embedded Kubernetes API allows everything"}


def _rules(body: Json) -> Json:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    return {
        "resourceRules": [everything],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    }


def _identity(body: Json) -> Json:
    return {"userInfo": {"username": "gpu-harness", "groups": ["system:masters", "system:authenticated"]}}


_ANSWERS: dict[str, Callable[[Json], Json]] = {
    "selfsubjectaccessreviews": _access,
    "selfsubjectrulesreviews": _rules,
    "selfsubjectreviews": _identity,
}


def review(plural: str, kind: str, api_version: str, body: Any) -> Json:
    if not isinstance(body, dict):
        raise bad_request(f"the body is no {kind}: a JSON object is needed")
    meta = {"creationTimestamp": None}
    return {"kind": kind, "apiVersion": api_version, "metadata": meta} | {
        "spec": body.get("spec") or {},
        "status": _ANSWERS[plural](body),
    }
