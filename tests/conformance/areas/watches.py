"""WATCH: what comes first, what follows, selections, bookmarks, ends and errors."""

from __future__ import annotations

from case import JSON_PATCH, MERGE, TABLE, Case, Events, Explained, Watch, case, delete, get, patch, post, put, setup
from wire_bodies import CONFIG_MAPS, DEPLOYMENTS, PODS, config_map, deployment, pod

OWN = "fieldSelector=metadata.name!=kube-root-ca.crt"
WATCH = f"{CONFIG_MAPS}?watch=true&{OWN}"
BRIEF = f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1"
LONGER = f"{CONFIG_MAPS}?watch=true&timeoutSeconds=3&{OWN}"
"""For answers with something in them: on a busy machine a second is not long enough for that."""
FINALIZER = {"metadata": {"finalizers": ["example.com/hold"]}}

CASES: list[Case] = [
    case(
        "the life of an object",
        Watch(WATCH),
        post(CONFIG_MAPS, config_map()),
        patch(f"{CONFIG_MAPS}/a", {"data": {"l": "2"}}),
        delete(f"{CONFIG_MAPS}/a"),
        Events(3),
    ),
    case(
        "what is there comes first",
        setup("POST", CONFIG_MAPS, config_map("a")),
        setup("POST", CONFIG_MAPS, config_map("b")),
        Watch(WATCH),
        Events(2),
        setup("POST", CONFIG_MAPS, config_map("c")),
        Events(1),
    ),
    case(
        "from a version on",
        setup("POST", CONFIG_MAPS, config_map("a"), save="a"),
        setup("POST", CONFIG_MAPS, config_map("b")),
        Watch(f"{WATCH}&resourceVersion={{a.version}}"),
        setup("DELETE", f"{CONFIG_MAPS}/a"),
        Events(2),
    ),
    case(
        "a change that changes nothing",
        setup("POST", CONFIG_MAPS, config_map("a"), save="a"),
        Watch(f"{WATCH}&resourceVersion={{a.version}}"),
        patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}}),
        patch(f"{CONFIG_MAPS}/a", {"data": {"k": "w"}}),
        Events(1),
        error=True,
    ),
    case(
        "an object that enters and leaves the selection",
        setup("POST", CONFIG_MAPS, config_map("a"), save="a"),
        Watch(f"{CONFIG_MAPS}?watch=true&labelSelector=on=1&resourceVersion={{a.version}}"),
        patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"on": "1"}}}),
        patch(f"{CONFIG_MAPS}/a", {"data": {"k": "2"}}),
        patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"on": None}}}),
        patch(f"{CONFIG_MAPS}/a", {"data": {"k": "3"}}),
        patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"on": "1"}}}),
        delete(f"{CONFIG_MAPS}/a"),
        Events(5),
    ),
    case(
        "a pod that leaves a field selection",
        setup("POST", PODS, pod("a"), save="a"),
        Watch(f"{PODS}?watch=true&fieldSelector=spec.nodeName=&resourceVersion={{a.version}}"),
        post(f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}),
        Events(1),
        pods=True,
    ),
    case(
        "deleted with a finalizer during a watch",
        Watch(WATCH),
        setup("POST", CONFIG_MAPS, config_map() | {"metadata": {"name": "a", "finalizers": ["example.com/hold"]}}),
        delete(f"{CONFIG_MAPS}/a"),
        patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}}),
        Events(3),
        error=True,
    ),
    case(
        "a pod deleted gracefully during a watch",
        Watch(f"{PODS}?watch=true"),
        setup("POST", PODS, pod("a", nodeName="n1")),
        delete(f"{PODS}/a"),
        delete(f"{PODS}/a", {"gracePeriodSeconds": 5}),
        delete(f"{PODS}/a", {"gracePeriodSeconds": 0}),
        Events(4),
        error=True,
        pods=True,
    ),
    case(
        "deleted and made again during a watch",
        Watch(WATCH),
        setup("POST", CONFIG_MAPS, config_map("a")),
        setup("DELETE", f"{CONFIG_MAPS}/a"),
        setup("POST", CONFIG_MAPS, config_map("a", k="2")),
        Events(3),
        error=True,
    ),
    case(
        "a collection deleted during a watch",
        setup("POST", CONFIG_MAPS, config_map("a")),
        setup("POST", CONFIG_MAPS, config_map("b")),
        Watch(WATCH),
        Events(2),
        delete(f"{CONFIG_MAPS}?{OWN}"),
        Events(2),
    ),
    case(
        "two writers during a watch",
        Watch(WATCH),
        setup("POST", CONFIG_MAPS, config_map("a"), save="a"),
        put(f"{CONFIG_MAPS}/a", {"metadata": {"name": "a", "resourceVersion": "{a.version}"}, "data": {"k": "1"}}),
        put(f"{CONFIG_MAPS}/a", {"metadata": {"name": "a", "resourceVersion": "{a.version}"}, "data": {"k": "2"}}),
        Events(2),
        error=True,
    ),
    case(
        "a failed write during a watch",
        Watch(WATCH),
        post(CONFIG_MAPS, {"metadata": {"name": "BAD"}}),
        setup("POST", CONFIG_MAPS, config_map("a")),
        Events(1),
        error=True,
    ),
    case(
        "a dry run during a watch",
        Watch(WATCH),
        post(f"{CONFIG_MAPS}?dryRun=All", config_map("x")),
        setup("POST", CONFIG_MAPS, config_map("a")),
        Events(1),
    ),
    case(
        "status and spec during a watch",
        Watch(f"{DEPLOYMENTS}?watch=true"),
        setup("POST", DEPLOYMENTS, deployment()),
        patch(f"{DEPLOYMENTS}/a/status", {"status": {"replicas": 1, "observedGeneration": 1}}),
        patch(f"{DEPLOYMENTS}/a/scale", {"spec": {"replicas": 3}}),
        patch(f"{DEPLOYMENTS}/a", [{"op": "replace", "path": "/spec/paused", "value": True}], JSON_PATCH),
        patch(f"{DEPLOYMENTS}/a", {"spec": {"paused": True}}, MERGE),
        Events(4),
    ),
    case(
        "events as Tables",
        Watch(WATCH, accept=TABLE),
        setup("POST", CONFIG_MAPS, config_map()),
        setup("POST", CONFIG_MAPS, config_map("b")),
        Events(2, drop=("object.columnDefinitions.*.description",)),
    ),
    case(
        "one object by name",
        setup("POST", CONFIG_MAPS, config_map("a")),
        setup("POST", CONFIG_MAPS, config_map("b")),
        Watch(f"{CONFIG_MAPS}?watch=true&fieldSelector=metadata.name=a"),
        Events(1),
        setup("DELETE", f"{CONFIG_MAPS}/b"),
        setup("DELETE", f"{CONFIG_MAPS}/a"),
        Events(1),
    ),
    case(
        "initial events and their end",
        setup("POST", CONFIG_MAPS, config_map("a")),
        get(
            f"{LONGER}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
            watch=True,
            drop=("*.object.metadata.resourceVersion",),
        ),
    ),
    case(
        "no initial events",
        setup("POST", CONFIG_MAPS, config_map("a")),
        get(
            f"{CONFIG_MAPS}?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=1&{OWN}",
            watch=True,
        ),
    ),
    case(
        "a watch ends by itself",
        setup("POST", CONFIG_MAPS, config_map("a"), save="a"),
        get(f"{BRIEF}&{OWN}&resourceVersion={{a.version}}", watch=True),
    ),
    case("initial events without a match rule", get(f"{BRIEF}&sendInitialEvents=true"), error=True),
    case(
        "initial events without bookmarks",
        setup("POST", CONFIG_MAPS, config_map("a")),
        get(f"{LONGER}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", watch=True),
    ),
    case(
        "initial events with Exact",
        get(f"{BRIEF}&sendInitialEvents=true&resourceVersionMatch=Exact&allowWatchBookmarks=true"),
        error=True,
    ),
    case(
        "a match rule without initial events",
        get(f"{BRIEF}&resourceVersionMatch=NotOlderThan&resourceVersion=1"),
        error=True,
    ),
    case(
        "a version that is no number",
        get(f"{BRIEF}&resourceVersion=abc"),
        error=True,
        explained=(
            Explained(
                "[0].*",
                "the real server answers a watch from a version that is no number with 500, the embedded one with "
                "400, as both do for a list",
            ),
        ),
    ),
    case("a selector that cannot be read", get(f"{BRIEF}&labelSelector=a%20b"), error=True),
    case("a field that cannot be selected", get(f"{BRIEF}&fieldSelector=data.k=v"), error=True),
    case("a timeout that is no number", get(f"{CONFIG_MAPS}?watch=true&timeoutSeconds=soon"), error=True),
    case("a limit on a watch", setup("POST", CONFIG_MAPS, config_map("a")), get(f"{LONGER}&limit=1", watch=True)),
    case("a continue token on a watch", get(f"{BRIEF}&continue=abc"), error=True),
]
