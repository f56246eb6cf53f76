"""What a server says about itself: version, groups, resources, in all the forms that clients ask for."""

from __future__ import annotations

from typing import Any

from case import Case, Explained, case, get

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2_BETA = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

SERVED = {
    "/api/v1": (
        "namespaces", "namespaces/status", "nodes", "nodes/status", "pods", "pods/status", "pods/eviction",
        "pods/binding", "pods/log", "services", "services/status", "configmaps", "secrets", "serviceaccounts", "events",
    ),
    "/apis/apps/v1": (
        "deployments", "deployments/status", "deployments/scale", "replicasets", "replicasets/status",
        "replicasets/scale",
    ),
    "/apis/autoscaling/v2": ("horizontalpodautoscalers", "horizontalpodautoscalers/status"),
    "/apis/autoscaling/v1": ("horizontalpodautoscalers", "horizontalpodautoscalers/status"),
    "/apis/policy/v1": ("poddisruptionbudgets", "poddisruptionbudgets/status"),
    "/apis/coordination.k8s.io/v1": ("leases",),
    "/apis/discovery.k8s.io/v1": ("endpointslices",),
    "/apis/events.k8s.io/v1": ("events",),
    "/apis/scheduling.k8s.io/v1": ("priorityclasses",),
    "/apis/scheduling.k8s.io/v1beta1": ("podgroups", "podgroups/status"),
    "/apis/apiextensions.k8s.io/v1": ("customresourcedefinitions", "customresourcedefinitions/status"),
    "/apis/authorization.k8s.io/v1": ("selfsubjectaccessreviews", "selfsubjectrulesreviews"),
    "/apis/authentication.k8s.io/v1": ("selfsubjectreviews",),
}  # fmt: skip


def only(names: tuple[str, ...]) -> Any:
    def pick(body: Any) -> Any:
        found = {e["name"]: e for e in body["resources"] if e["name"] in names}
        return {k: v for k, v in body.items() if k != "resources"} | {"resources": found}

    return pick


def groups(*names: str) -> Any:
    def pick(body: Any) -> Any:
        return {k: v for k, v in body.items() if k != "groups"} | {
            "groups": {g["name"]: g for g in body["groups"] if g["name"] in names}
        }

    return pick


def aggregated(group: str, *resources: str) -> Any:
    def pick(body: Any) -> Any:
        item = next(i for i in body["items"] if i["metadata"].get("name", "") == group)
        versions = []
        for version in item["versions"]:
            kept = {r["resource"]: r for r in version["resources"] if r["resource"] in resources}
            for entry in kept.values():
                subs = [s for s in entry.get("subresources", []) if s["subresource"] in ("status", "scale", "eviction")]
                entry["subresources"] = {s["subresource"]: s for s in subs}
            versions.append({k: v for k, v in version.items() if k != "resources"} | {"resources": kept})
        head = {k: v for k, v in body.items() if k not in ("items", "metadata")}
        return head | {"item": item["metadata"].get("name", ""), "versions": versions}

    return pick


GROUPS = (
    "apps", "autoscaling", "policy", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "scheduling.k8s.io",
    "apiextensions.k8s.io", "authorization.k8s.io", "authentication.k8s.io",
)  # fmt: skip

CASES: list[Case] = [
    *(case(f"resources of {path}", get(path, pick=only(names))) for path, names in SERVED.items()),
    case("groups", get("/apis", pick=groups(*GROUPS))),
    *(case(f"group {name}", get(f"/apis/{name}")) for name in ("apps", "autoscaling", "scheduling.k8s.io")),
    case("api versions", get("/api")),
    case(
        "version",
        get("/version"),
        explained=(Explained("[0].body.*", "version, build date and platform are those of each server's own build"),),
    ),
    case(
        "aggregated discovery of the core group",
        get("/api", accept=V2, pick=aggregated("", "pods", "nodes", "services")),
    ),
    case(
        "aggregated discovery of apps", get("/apis", accept=V2, pick=aggregated("apps", "deployments", "replicasets"))
    ),
    case("aggregated discovery v2beta1", get("/apis", accept=f"{V2_BETA},application/json", pick=groups(*GROUPS))),
    case("healthz", get("/healthz")),
    case("livez", get("/livez")),
    case("readyz", get("/readyz")),
    case("a group that is not there", get("/apis/no.such.group"), error=True),
    case("a resource of a group that is not there", get("/apis/no.such.group/v1/things"), error=True),
    case("a version that is not there", get("/apis/apps/v9"), error=True),
    case("a core version that is not there", get("/api/v9"), error=True),
    case("a path that is nothing", get("/nothing/here"), error=True),
    case("a resource that is not there", get("/apis/apps/v1/namespaces/{ns}/things"), error=True),
    case("a resource that is not there, by name", get("/api/v1/namespaces/{ns}/things/a"), error=True),
]
