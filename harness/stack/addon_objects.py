"""What an addon needs in the API server before its programs start: kinds, Services, Secrets, webhooks, APIs.

Pure: from files and a description to objects. A Service here is of type ExternalName and leads to this machine: without
kube-proxy no cluster address works, but the API server resolves such a name, keeps the port of the webhook or
APIService, and still checks the certificate against the Service's own name (kubernetes v1.37, k8s.io/apiserver
pkg/util/proxy).
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from harness.errors import BadInput, Where
from harness.kube.port import NAMESPACE, RESOURCES, SECRET, SERVICE, Json, Resource
from harness.stack.description import Addon, WebhooksSpec

CRD = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
API_SERVICE = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", False)
_ADMISSION = "admissionregistration.k8s.io"
MUTATING = Resource(_ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False)
VALIDATING = Resource(_ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False)
_RBAC = "rbac.authorization.k8s.io"
_MORE = (
    CRD, API_SERVICE, MUTATING, VALIDATING,
    Resource(_RBAC, "v1", "clusterroles", "ClusterRole", False),
    Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False),
    Resource(_RBAC, "v1", "roles", "Role", True),
    Resource(_RBAC, "v1", "rolebindings", "RoleBinding", True),
)  # fmt: skip
BUILT_IN = {(r.api_version, r.kind): r for r in (*RESOURCES, *_MORE)}
Wanted = tuple[Resource, Json]


def read_objects(files: Sequence[Path]) -> list[Json]:
    """BadInput for a file that holds something else."""
    return [obj for file in files for obj in _read(file)]


def _read(file: Path) -> list[Json]:
    try:
        found = [obj for obj in yaml.load_all(file.read_text(), yaml.CSafeLoader) if obj]
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(f"is no YAML: {' '.join(str(error).split())}", where=Where(str(file))) from None
    if wrong := next((obj for obj in found if not isinstance(obj, dict)), None):
        raise BadInput(f"holds {wrong!r}, which is no object", where=Where(str(file)))
    return found


def kinds_of(crds: Sequence[Json]) -> list[Resource]:
    """The resource of each CRD, in the version that is stored."""
    return [_stored(crd) for crd in crds if crd.get("kind") == "CustomResourceDefinition"]


def crd_objects(addon: Addon, crds: Sequence[Json], port: int | None) -> Iterator[Wanted]:
    """The CRDs; those with a conversion webhook call it at ``port``."""
    hooks = addon.webhooks
    for crd in crds:
        if crd.get("kind") != "CustomResourceDefinition":
            continue
        if hooks is not None and crd["metadata"]["name"] in hooks.converts:
            service = _service(addon, hooks, port, "/convert")
            webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
            conversion = {"strategy": "Webhook", "webhook": webhook}
            crd = crd | {"spec": crd["spec"] | {"conversion": conversion}}
        yield CRD, crd


def base_objects(addon: Addon) -> Iterator[Wanted]:
    """Namespace, Services and empty Secrets."""
    if addon.namespace is None:
        return
    yield NAMESPACE, {"metadata": {"name": addon.namespace}}
    for name in addon.services:
        spec = {"type": "ExternalName", "externalName": "localhost"}
        yield SERVICE, {"metadata": {"name": name, "namespace": addon.namespace}, "spec": spec}
    for name in addon.secrets:
        yield SECRET, {"metadata": {"name": name, "namespace": addon.namespace}}


def webhook_objects(addon: Addon, configurations: Sequence[Json], port: int) -> Iterator[Wanted]:
    hooks = addon.webhooks
    assert hooks is not None, "asked for addons with webhooks only"
    for configuration in configurations:
        resource = BUILT_IN.get((configuration["apiVersion"], configuration["kind"]))
        if resource not in (MUTATING, VALIDATING):
            continue
        found = copy.deepcopy(configuration)
        found["metadata"] = {"name": hooks.prefix + found["metadata"]["name"]}
        kept = [hook for hook in found["webhooks"] if not hooks.only or hook["name"] in hooks.only]
        found["webhooks"] = [_patched(addon, hooks, hook, port) for hook in kept]
        if kept:
            yield resource, found


def api_objects(addon: Addon, ports: Mapping[str, int], authority: Path | None) -> Iterator[Wanted]:
    """An APIService for each API. ``authority`` signs their servers' certificates; where an addon makes its own, it
    writes their authority here itself."""
    for api in addon.apis:
        service = {"name": api.service, "namespace": addon.namespace, "port": ports[api.port]}
        spec: Json = {
            "group": api.group,
            "version": api.version,
            "service": service,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        }
        if authority is not None:
            spec["caBundle"] = base64.b64encode(authority.read_bytes()).decode()
        yield API_SERVICE, {"metadata": {"name": f"{api.version}.{api.group}"}, "spec": spec}


def typed(objects: Sequence[Json], kinds: Sequence[Resource], file: Path) -> Iterator[Wanted]:
    """Objects with the resource of each: built in, or of one of ``kinds``."""
    known = BUILT_IN | {(r.api_version, r.kind): r for r in kinds}
    for obj in objects:
        resource = known.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
        if resource is None:
            raise BadInput(
                f"{obj.get('kind')} of {obj.get('apiVersion')} is no kind known here", where=Where(str(file))
            )
        yield resource, obj


def _patched(addon: Addon, hooks: WebhooksSpec, hook: Json, port: int) -> Json:
    path = hook["clientConfig"]["service"].get("path", "/")
    hook["clientConfig"] = {"service": _service(addon, hooks, port, path)}
    spared = [*hooks.not_in, *([addon.namespace] if addon.namespace else [])]
    own = hook.get("namespaceSelector") or {}
    rule = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": spared}
    hook["namespaceSelector"] = own | {"matchExpressions": [*own.get("matchExpressions", []), rule]}
    if hook["name"] in hooks.labelled:
        hook["objectSelector"] = {"matchExpressions": [{"key": hooks.labelled[hook["name"]], "operator": "Exists"}]}
    return hook


def _service(addon: Addon, hooks: WebhooksSpec, port: int | None, path: str) -> dict[str, Any]:
    return {"name": hooks.service, "namespace": addon.namespace, "path": path, "port": port}


def _stored(crd: Json) -> Resource:
    spec = crd["spec"]
    version = next(v["name"] for v in spec["versions"] if v.get("storage"))
    names = spec["names"]
    return Resource(spec["group"], version, names["plural"], names["kind"], spec["scope"] == "Namespaced")
