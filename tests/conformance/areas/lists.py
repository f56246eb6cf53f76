"""LIST: selectors, pages, resourceVersion and its match rules."""

from __future__ import annotations

from dataclasses import replace

from case import TABLE, Call, Case, Step, case, delete, get, setup
from wire_bodies import CONFIG_MAPS, DEPLOYMENTS, EVENTS, KINDS, PODS, SECRETS, config_map, pod

OWN = "metadata.name!=kube-root-ca.crt"
LIST = f"{CONFIG_MAPS}?fieldSelector={OWN}"


def three() -> tuple[Step, ...]:
    def labelled(name: str, **labels: str) -> Step:
        return setup("POST", CONFIG_MAPS, {"metadata": {"name": name, "labels": labels}, "data": {"k": name}})

    return labelled("a", app="x", tier="1"), labelled("b", app="y", tier="1"), labelled("c", app="x")


def cached(name: str) -> Step:
    """Version 0 may be answered with what a cache knows already: the real server's then is behind its writes. It learns
    of them in order, so that with the last one it knows all."""
    return Call("GET", f"{CONFIG_MAPS}/{name}?resourceVersion=0", setup=True, until=True)


def labels(selector: str, error: bool = False) -> Case:
    return case(f"labelSelector {selector}", *three(), get(f"{LIST}&labelSelector={selector}"), error=error)


def fields(path: str, selector: str, *steps: Step, error: bool = False, pods: bool = False) -> Case:
    return case(f"fieldSelector {selector}", *steps, get(f"{path}?fieldSelector={selector}"), error=error, pods=pods)


TWO_PODS = (
    setup("POST", PODS, pod("a")),
    setup("POST", PODS, pod("b", nodeName="n1", restartPolicy="Never")),
)
MANY = tuple(setup("POST", CONFIG_MAPS, config_map(f"c{i}")) for i in range(5))

_CASES: list[Case] = [
    *(
        case(
            f"list {kind}",
            setup("POST", path, body),
            get(f"{path}?fieldSelector=metadata.name={body['metadata']['name']}"),
            pods=kind == "Pod",
        )
        for kind, (path, body) in KINDS.items()
    ),
    case("an empty list", get(f"{PODS}?labelSelector=app=none")),
    case("list in a namespace that is not there", get("/api/v1/namespaces/no-such/configmaps"), error=True),
    labels("app=x"),
    labels("app==x"),
    labels("app!=x"),
    labels("app in (x,y),tier"),
    labels("app notin (x)"),
    labels("!tier"),
    labels("tier,app=x"),
    labels("app in (x", error=True),
    labels("app=x=y", error=True),
    labels("app>x", error=True),
    labels("=x", error=True),
    labels("a b", error=True),
    labels("app=-x", error=True),
    labels("-app", error=True),
    fields(CONFIG_MAPS, "metadata.name=a", *three()),
    fields(CONFIG_MAPS, f"metadata.name!=a,{OWN}", *three()),
    fields(CONFIG_MAPS, "data.k=a", *three(), error=True),
    fields(CONFIG_MAPS, "metadata.name", *three(), error=True),
    fields(CONFIG_MAPS, "metadata.name~a", *three(), error=True),
    fields(PODS, "spec.nodeName=n1", *TWO_PODS, pods=True),
    fields(PODS, "spec.nodeName=", *TWO_PODS, pods=True),
    fields(PODS, "status.phase!=Pending", *TWO_PODS, pods=True),
    fields(PODS, "spec.restartPolicy=Never,status.phase=Pending", *TWO_PODS, pods=True),
    fields(PODS, "spec.image=x", *TWO_PODS, error=True, pods=True),
    fields(DEPLOYMENTS, "status.replicas=1", error=True),
    fields(SECRETS, "type=Opaque", setup("POST", SECRETS, KINDS["Secret"][1])),
    fields(EVENTS, "involvedObject.kind=Pod,involvedObject.name=a,reason=R", setup("POST", EVENTS, KINDS["Event"][1])),
    fields(EVENTS, "type=Warning", setup("POST", EVENTS, KINDS["Event"][1])),
    fields(EVENTS, "message=m", error=True),
    case(
        "pages",
        *MANY,
        get(f"{CONFIG_MAPS}?limit=2", save="p"),
        get(f"{CONFIG_MAPS}?limit=2&continue={{p.next}}", save="q"),
        get(f"{CONFIG_MAPS}?limit=2&continue={{q.next}}"),
    ),
    case(
        "pages with a selector",
        *MANY,
        get(f"{LIST}&limit=2", save="p"),
        get(f"{LIST}&limit=2&continue={{p.next}}", save="q"),
        get(f"{LIST}&limit=2&continue={{q.next}}"),
    ),
    case(
        "a page of a snapshot",
        *MANY,
        get(f"{CONFIG_MAPS}?limit=3", save="p"),
        setup("DELETE", f"{CONFIG_MAPS}/c4"),
        setup("POST", CONFIG_MAPS, config_map("c9")),
        get(f"{CONFIG_MAPS}?limit=9&continue={{p.next}}"),
        error=True,
    ),
    case(
        "a page as a Table",
        *MANY,
        get(f"{CONFIG_MAPS}?limit=2", accept=TABLE, drop=("columnDefinitions.*.description",)),
    ),
    case("limit of zero", *MANY, get(f"{LIST}&limit=0")),
    case("limit below zero", get(f"{LIST}&limit=-1"), error=True),
    case("limit that is no number", get(f"{CONFIG_MAPS}?limit=many"), error=True),
    case("continue that is no token", get(f"{CONFIG_MAPS}?continue=junk!"), error=True),
    case(
        "continue with a resourceVersion",
        *MANY,
        get(f"{CONFIG_MAPS}?limit=2", save="p"),
        get(f"{CONFIG_MAPS}?limit=2&continue={{p.next}}&resourceVersion=5"),
        error=True,
    ),
    case("resourceVersion 0", *three(), cached("c"), get(f"{LIST}&resourceVersion=0")),
    case(
        "resourceVersion of an object",
        *three(),
        setup("GET", f"{CONFIG_MAPS}/c", save="c"),
        get(f"{LIST}&resourceVersion={{c.version}}"),
    ),
    case(
        "resourceVersionMatch NotOlderThan",
        *three(),
        setup("GET", f"{CONFIG_MAPS}/c", save="c"),
        get(f"{LIST}&resourceVersion={{c.version}}&resourceVersionMatch=NotOlderThan"),
    ),
    case("resourceVersion that is no number", get(f"{CONFIG_MAPS}?resourceVersion=abc"), error=True),
    case("resourceVersionMatch alone", get(f"{CONFIG_MAPS}?resourceVersionMatch=Exact"), error=True),
    case("resourceVersionMatch unknown", get(f"{CONFIG_MAPS}?resourceVersion=1&resourceVersionMatch=Near"), error=True),
    case(
        "resourceVersionMatch Exact 0", get(f"{CONFIG_MAPS}?resourceVersion=0&resourceVersionMatch=Exact"), error=True
    ),
    case(
        "resourceVersionMatch with continue",
        *MANY,
        get(f"{CONFIG_MAPS}?limit=2", save="p"),
        get(f"{CONFIG_MAPS}?limit=2&continue={{p.next}}&resourceVersionMatch=NotOlderThan&resourceVersion=1"),
        error=True,
    ),
    case("sendInitialEvents on a list", get(f"{CONFIG_MAPS}?sendInitialEvents=true"), error=True),
    case("get with a resourceVersion of 0", *three(), cached("a"), get(f"{CONFIG_MAPS}/a?resourceVersion=0")),
    case("get what is not there", get(f"{CONFIG_MAPS}/none"), error=True),
    case("get from a namespace that is not there", get("/api/v1/namespaces/no-such/configmaps/a"), error=True),
    case(
        "list all namespaces by name",
        *three(),
        get("/api/v1/configmaps?fieldSelector=metadata.namespace={ns},metadata.name=a"),
    ),
    case("delete a collection by label", *three(), delete(f"{CONFIG_MAPS}?labelSelector=app=x"), get(LIST)),
    case("delete a collection by field", *three(), delete(f"{CONFIG_MAPS}?fieldSelector=metadata.name=a"), get(LIST)),
    case("delete a collection of nothing", delete(f"{CONFIG_MAPS}?labelSelector=app=none"), error=True),
    case(
        "delete a collection as a dry run", *three(), delete(f"{CONFIG_MAPS}?labelSelector=app=x&dryRun=All"), get(LIST)
    ),
    case("delete a collection of pods", *TWO_PODS, delete(f"{PODS}?gracePeriodSeconds=0"), get(PODS), pods=True),
]

_COUNTED = {
    "pages",
    "a page of a snapshot",
    "a page as a Table",
    "continue with a resourceVersion",
    "resourceVersionMatch with continue",
}
CASES = [replace(c, pods=c.pods or c.name in _COUNTED) for c in _CASES]
