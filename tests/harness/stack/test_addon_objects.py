"""What the API server is given for an addon: patched as its kustomize files would, and leading to this machine."""

from __future__ import annotations

from pathlib import Path

from harness.kube.port import Json
from harness.stack.addon_objects import (
    API_SERVICE,
    CRD,
    api_objects,
    base_objects,
    crd_objects,
    kinds_of,
    webhook_objects,
)
from harness.stack.description import Addon

ADDON = Addon.model_validate(
    {
        "about": "x", "source": "example.org/x", "page": "p", "install": "i", "finds": "f",
        "programs": [{"name": "x", "package": "p", "health": "http://h"}],
        "namespace": "x-system", "services": ["x-hook"], "secrets": {"x-cert": "certs"},
        "webhooks": {
            "files": ["f"], "prefix": "x-", "service": "x-hook", "port": "webhook",
            "converts": ["things.example.org"], "labelled": {"mpod.x": "x/name"},
        },
        "apis": [{"group": "metrics.example.org", "version": "v1", "service": "x-hook", "port": "api"}],
    }
)  # fmt: skip


def crd(plural: str, kind: str) -> Json:
    versions = [{"name": "v1beta1", "storage": False}, {"name": "v1", "storage": True}]
    names = {"plural": plural, "kind": kind}
    spec = {"group": "example.org", "scope": "Cluster", "names": names, "versions": versions}
    return {"kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.example.org"}, "spec": spec}


def test_kinds_are_the_stored_versions() -> None:
    (thing,) = kinds_of([crd("things", "Thing"), {"kind": "Service"}])
    assert (thing.api_version, thing.plural, thing.kind, thing.namespaced) == (
        "example.org/v1", "things", "Thing", False,
    )  # fmt: skip


def test_only_what_is_converted_calls_the_webhook() -> None:
    (_, things), (resource, others) = crd_objects(ADDON, [crd("things", "Thing"), crd("others", "Other")], 4711)
    service = {"name": "x-hook", "namespace": "x-system", "path": "/convert", "port": 4711}
    assert things["spec"]["conversion"]["webhook"]["clientConfig"] == {"service": service}
    assert resource is CRD and "conversion" not in others["spec"]


def test_services_lead_to_this_machine_and_secrets_wait_to_be_filled() -> None:
    assert [obj.get("spec") for _, obj in base_objects(ADDON)] == [
        None, {"type": "ExternalName", "externalName": "localhost"}, None,
    ]  # fmt: skip


def hook(name: str) -> Json:
    return {"name": name, "clientConfig": {"service": {"name": "webhook-service", "path": f"/{name}"}}}


def test_webhooks_call_us_and_leave_the_system_alone() -> None:
    written = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "mutating"},
        "webhooks": [hook("mpod.x"), hook("mjob.x")],
    }
    ((_, found),) = webhook_objects(ADDON, [written, {"apiVersion": "v1", "kind": "Service"}], 4711)
    assert found["metadata"]["name"] == "x-mutating"
    pod, job = found["webhooks"]
    assert pod["clientConfig"]["service"] == {
        "name": "x-hook", "namespace": "x-system", "path": "/mpod.x", "port": 4711,
    }  # fmt: skip
    spared = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "x-system"]}
    assert pod["namespaceSelector"] == {"matchExpressions": [spared]} == job["namespaceSelector"]
    assert pod["objectSelector"] == {"matchExpressions": [{"key": "x/name", "operator": "Exists"}]}
    assert "objectSelector" not in job
    assert "port" not in written["webhooks"][0]["clientConfig"]["service"], "what was read stays as it was"


def test_an_api_is_checked_against_who_signs_for_it(tmp_path: Path) -> None:
    authority = tmp_path / "ca"
    authority.write_bytes(b"us")
    ((resource, ours),) = api_objects(ADDON, {"api": 4712}, authority)
    ((_, its_own),) = api_objects(ADDON, {"api": 4712}, None)
    assert resource is API_SERVICE and ours["metadata"]["name"] == "v1.metrics.example.org"
    assert (ours["spec"]["caBundle"], ours["spec"]["service"]["port"]) == ("dXM=", 4712)
    assert "caBundle" not in its_own["spec"], "it writes its authority there itself"
