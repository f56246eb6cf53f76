"""DELETE: preconditions, grace, finalizers, propagation, collections, namespaces."""

from __future__ import annotations

from typing import Any

from case import MERGE, Case, case, delete, get, patch, post, put, setup
from wire_bodies import (
    ACCOUNTS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    SERVICES,
    Json,
    config_map,
    deployment,
    pod,
    service,
)

A = f"{CONFIG_MAPS}/a"
P = f"{PODS}/a"
D = f"{DEPLOYMENTS}/a"
MADE = setup("POST", CONFIG_MAPS, config_map(), save="a")
HELD = setup(
    "POST", CONFIG_MAPS, {**config_map(), "metadata": {"name": "a", "finalizers": ["example.com/hold"]}}, save="a"
)
BOUND = setup("POST", PODS, pod("a", nodeName="n1"), save="a")
NOWHERE = "00000000-0000-4000-8000-000000000000"


def options(**fields: Any) -> Json:
    return {"kind": "DeleteOptions", "apiVersion": "v1", **fields}


CASES: list[Case] = [
    case("delete", MADE, delete(A), get(A), error=True),
    case("delete what is not there", delete(A), error=True),
    case("delete with the uid that is there", MADE, delete(A, options(preconditions={"uid": "{a.uid}"}))),
    case("delete with another uid", MADE, delete(A, options(preconditions={"uid": NOWHERE})), get(A), error=True),
    case(
        "delete with the version that is there",
        MADE,
        delete(A, options(preconditions={"resourceVersion": "{a.version}"})),
    ),
    case(
        "delete with a stale version",
        MADE,
        setup("PATCH", A, {"data": {"k": "9"}}, type=MERGE),
        delete(A, options(preconditions={"resourceVersion": "{a.version}"})),
        error=True,
    ),
    case(
        "delete after delete and create, by uid",
        MADE,
        setup("DELETE", A),
        setup("POST", CONFIG_MAPS, config_map()),
        delete(A, options(preconditions={"uid": "{a.uid}"})),
        error=True,
    ),
    case("delete with a finalizer", HELD, delete(A), get(A), delete(A), get(A)),
    case("the last finalizer goes", HELD, delete(A), patch(A, {"metadata": {"finalizers": None}}), get(A), error=True),
    case(
        "one of two finalizers goes",
        setup(
            "POST",
            CONFIG_MAPS,
            {**config_map(), "metadata": {"name": "a", "finalizers": ["example.com/a", "example.com/b"]}},
        ),
        delete(A),
        patch(A, {"metadata": {"finalizers": ["example.com/b"]}}),
        get(A),
    ),
    case(
        "a finalizer added while it is being deleted",
        HELD,
        delete(A),
        patch(A, {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}),
        error=True,
    ),
    case("a change while it is being deleted", HELD, delete(A), patch(A, {"data": {"k": "2"}})),
    case("created while it is being deleted", HELD, delete(A), post(CONFIG_MAPS, config_map()), error=True),
    case(
        "a deletionTimestamp cannot be taken back", HELD, delete(A), patch(A, {"metadata": {"deletionTimestamp": None}})
    ),
    case("delete as a dry run", MADE, delete(f"{A}?dryRun=All"), get(A)),
    case("delete as a dry run, by body", MADE, delete(A, options(dryRun=["All"])), get(A)),
    case("delete with an unknown dryRun", MADE, delete(A, options(dryRun=["Some"])), error=True),
    case("delete a pod that runs nowhere", setup("POST", PODS, pod()), delete(P), get(P), error=True, pods=True),
    case("delete a pod gracefully", BOUND, delete(P), get(P), pods=True),
    case(
        "delete a pod with its own grace",
        setup("POST", PODS, pod("a", nodeName="n1", terminationGracePeriodSeconds=7)),
        delete(P),
        pods=True,
    ),
    case("delete a pod with a grace", BOUND, delete(P, options(gracePeriodSeconds=60)), pods=True),
    case("delete a pod with a grace in the query", BOUND, delete(f"{P}?gracePeriodSeconds=5"), pods=True),
    case("delete a pod at once", BOUND, delete(P, options(gracePeriodSeconds=0)), get(P), error=True, pods=True),
    case(
        "a second delete shortens the grace",
        BOUND,
        delete(P),
        delete(P, options(gracePeriodSeconds=3)),
        get(P),
        pods=True,
    ),
    case(
        "a second delete does not lengthen the grace",
        BOUND,
        delete(P),
        delete(P, options(gracePeriodSeconds=90)),
        get(P),
        error=True,
        pods=True,
    ),
    case("a grace below zero", BOUND, delete(P, options(gracePeriodSeconds=-5)), get(P), error=True, pods=True),
    case(
        "a finished pod goes at once",
        BOUND,
        setup("PATCH", f"{P}/status", {"status": {"phase": "Succeeded"}}, type=MERGE),
        delete(P),
        get(P),
        error=True,
        pods=True,
    ),
    case(
        "a pod with a finalizer",
        setup("POST", PODS, {**pod("a", nodeName="n1"), "metadata": {"name": "a", "finalizers": ["example.com/hold"]}}),
        delete(P, options(gracePeriodSeconds=0)),
        get(P),
        patch(P, {"metadata": {"finalizers": None}}),
        get(P),
        error=True,
        pods=True,
    ),
    case("the grace of a ConfigMap is none", MADE, delete(A, options(gracePeriodSeconds=30)), get(A), error=True),
    case(
        "foreground",
        setup("POST", DEPLOYMENTS, deployment()),
        delete(D, options(propagationPolicy="Foreground")),
        get(D),
    ),
    case("orphan", setup("POST", DEPLOYMENTS, deployment()), delete(D, options(propagationPolicy="Orphan")), get(D)),
    case(
        "orphanDependents", setup("POST", DEPLOYMENTS, deployment()), delete(D, options(orphanDependents=True)), get(D)
    ),
    case(
        "background",
        setup("POST", DEPLOYMENTS, deployment()),
        delete(D, options(propagationPolicy="Background")),
        get(D),
        error=True,
    ),
    case("foreground by query", setup("POST", DEPLOYMENTS, deployment()), delete(f"{D}?propagationPolicy=Foreground")),
    case(
        "foreground, then background",
        setup("POST", DEPLOYMENTS, deployment()),
        delete(D, options(propagationPolicy="Foreground")),
        delete(D, options(propagationPolicy="Background")),
        get(D),
        error=True,
    ),
    case("an unknown propagation", MADE, delete(A, options(propagationPolicy="Sideways")), error=True),
    case(
        "propagation and orphanDependents",
        MADE,
        delete(A, options(propagationPolicy="Orphan", orphanDependents=True)),
        error=True,
    ),
    case("options of another kind", MADE, delete(A, {"kind": "Pod", "apiVersion": "v1"}), error=True),
    case("options that are a list", MADE, delete(A, []), error=True),
    case("options that are no JSON", MADE, delete(A, "{"), error=True),
    case("a grace that is a text", MADE, delete(A, options(gracePeriodSeconds="soon")), error=True),
    case("a grace in the query that is no number", MADE, delete(f"{A}?gracePeriodSeconds=soon"), error=True),
    case("delete a service", setup("POST", SERVICES, service()), delete(f"{SERVICES}/a")),
    case("delete a service account", setup("POST", ACCOUNTS, {"metadata": {"name": "a"}}), delete(f"{ACCOUNTS}/a")),
    case("delete a namespace that must stay", delete(f"{NAMESPACES}/default"), error=True),
    case("delete kube-system", delete(f"{NAMESPACES}/kube-system"), error=True),
    case("delete all namespaces", delete(NAMESPACES), error=True),
    case(
        "create in a namespace that ends",
        setup("POST", NAMESPACES, {"metadata": {"name": "{ns}-x", "finalizers": ["example.com/hold"]}}),
        delete(f"{NAMESPACES}/{{ns}}-x"),
        post("/api/v1/namespaces/{ns}-x/configmaps", config_map()),
        patch(
            f"{NAMESPACES}/{{ns}}-x",
            {"metadata": {"finalizers": None}},
            drop=("status", "metadata.resourceVersion", "metadata.managedFields"),
        ),
        error=True,
    ),
    case(
        "a namespace with something in it ends",
        setup("POST", NAMESPACES, {"metadata": {"name": "{ns}-y"}}),
        setup("POST", "/api/v1/namespaces/{ns}-y/configmaps", config_map()),
        delete(f"{NAMESPACES}/{{ns}}-y", drop=("metadata.resourceVersion",)),
        put(f"{NAMESPACES}/{{ns}}-y", {"metadata": {"name": "{ns}-none"}}),
        error=True,
    ),
    case(
        "delete a collection with a finalizer among it",
        HELD,
        setup("POST", CONFIG_MAPS, config_map("b")),
        delete(f"{CONFIG_MAPS}?fieldSelector=metadata.name!=kube-root-ca.crt"),
        get(A),
        get(f"{CONFIG_MAPS}/b"),
        error=True,
    ),
    case(
        "delete a collection with options",
        setup("POST", PODS, pod("a", nodeName="n1")),
        delete(PODS, options(gracePeriodSeconds=9)),
        get(P),
        pods=True,
    ),
    case("delete a collection by an unreadable selector", delete(f"{CONFIG_MAPS}?labelSelector=a%20b"), error=True),
]
