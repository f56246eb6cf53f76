"""Reviews: may I, and who am I. Everybody may do everything here; clients only need the shape of the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fakes.kube.status import bad_request, bad_value, failure
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
    stated_spec = body.get("spec")
    spec: Json = stated_spec if isinstance(stated_spec, dict) else {}
    if plural == "selfsubjectaccessreviews":
        stated = [f for f in ("resourceAttributes", "nonResourceAttributes") if spec.get(f) is not None]
        if len(stated) != 1:
            text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            cause = bad_value("spec", None, text)
            details = {"group": "authorization.k8s.io", "causes": [cause.to_json()]}
            raise failure(422, "Invalid", f'.authorization.k8s.io "" is invalid: {cause}', details)
    meta: Json = {}
    return {"kind": kind, "apiVersion": api_version, "metadata": meta} | {
        "spec": spec,
        "status": _ANSWERS[plural](body),
    }
