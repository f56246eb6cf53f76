"""Replicas that were wanted and did not come, or came late: which component had its turn, and did not do its part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from harness.checks.units import count, listed
from harness.diagnosis.case import SHOWN, Case
from harness.diagnosis.gone import process_gone
from harness.diagnosis.nodepools import closed
from harness.diagnosis.scope import nodes_hit, pods_hit
from harness.diagnosis.suspect import (
    CLOUD,
    DEVICE_PLUGIN,
    ENDPOINTS,
    GATEWAY,
    KUBELET,
    LATE_REPLICAS,
    PROBE,
    PROVISIONER,
    SCHEDULER,
    SERVER,
    Suspect,
)
from harness.history.lives import Life, allocatable, condition, node_of, node_of_claim, ready
from harness.history.scaleup import Replica, waiting_at
from harness.history.waiting import Wait
from harness.verdict import Evidence

_STUCK_S = 120.0
"""Scenario seconds after which a replica that does not serve is stuck: more than any stage of a healthy one takes."""
_ASKED = 10
"""So many requests went elsewhere meanwhile."""
_KARPENTER = "karpenter-kwok"
_LOADS_S = 180.0
"""The same for one that is there and loads its model."""
Stuck = Sequence[tuple[Replica, str]]


def newcomers(case: Case) -> Iterator[Suspect]:
    """By what they wait for; those that came late by their slowest stage."""
    until = case.history.recorded_until_ns
    by: dict[Wait, list[tuple[Replica, str]]] = {}
    for replica in case.replicas:
        decided = replica.marks["T1"].t_ns
        ended = until if replica.withdrawn_ns is None else replica.withdrawn_ns
        if replica.served_ns is not None and _only_found_room(case, replica):
            by.setdefault(Wait.NO_NODE_DECIDED, []).append((replica, "room: none was made for it"))
        if replica.served_ns is not None or decided is None or ended - decided < case.ns(_STUCK_S):
            continue
        waits = waiting_at(case.history, replica, until)
        by.setdefault(waits.what, []).append((replica, waits.words))
    for what, tell in _TELLERS.items():
        if stuck := by.get(what):
            yield from tell(case, stuck)
    yield from _slow_to_order(case)
    yield from _slow_to_load(case)


def _only_found_room(case: Case, replica: Replica) -> bool:
    """Whether it waited for long, and came in the end to where another had gone: the node was there all the while."""
    refused, fate = replica.marks["T2"].t_ns, case.fates.get(replica.pod)
    bound = fate.life.when(lambda pod: bool(node_of(pod))) if fate else None
    since = max((t for mark in ("T2", "T3", "T5") if (t := replica.marks[mark].t_ns) is not None), default=0)
    return refused is not None and bound is not None and bound.t_ns - since > case.ns(_STUCK_S)


def _replicas(stuck: Stuck) -> str:
    return count(len(stuck), "replica")


def _rows(case: Case, stuck: Stuck) -> tuple[Evidence, ...]:
    found = []
    for replica, words in stuck[:SHOWN]:
        pod = case.fates.get(replica.pod)
        ref = f"objects:{pod.life.seen[-1].index}" if pod else replica.marks["T1"].ref
        text = f"{replica.pod or 'a replica without a pod'} on {replica.node or 'no node'} waited for {words}"
        found.append(Evidence(ref, replica.created_ns or replica.marks["T1"].t_ns, text, {"pod": replica.pod}))
    return tuple(found)


def _suspect(case: Case, stuck: Stuck, component: str, act: str, mark: str, **more: object) -> Suspect:
    since = min(r.marks[mark].t_ns or r.created_ns or r.marks["T1"].t_ns or 0 for r, _ in stuck)
    fields = {"since_ns": since, "breaks": LATE_REPLICAS, "seen": _rows(case, stuck)} | more
    return Suspect(component, act, **fields)  # type: ignore[arg-type]  # the fields are those of a suspect


def _on_nodes(case: Case, stuck: Stuck) -> str:
    """Pods that had a node, against all that had one: a template that serves elsewhere is not what is wrong."""
    pods = [r.pod for r, _ in stuck if r.pod]
    return pods_hit(case, pods, [name for name, fate in case.fates.items() if fate.node_name])


def _no_order(case: Case, stuck: Stuck) -> Iterator[Suspect]:
    made = len([c for c in case.of("NodeClaim") if c.born_ns > case.start_ns])
    act = (
        f"ordered no node for {_replicas(stuck)} that found no room ({count(made, 'NodeClaim')} made since the load"
        " began)"
    )
    change = "see its log for these pods, its limits, and whether their requirements fit any of its pools"
    if why := closed(case):
        act += f": {listed(why)}"
        change = "raise the limits, mend what keeps the NodePool from being ready, or add another to fall back to"
    breaks = LATE_REPLICAS | {"gang"}
    yield _suspect(case, stuck, PROVISIONER, act, "T2", breaks=breaks, change=change)


def _slow_to_order(case: Case) -> Iterator[Suspect]:
    """Decided at last, and long after the scheduler had found no room, with no room on its way in between."""
    found: list[tuple[Replica, int, int]] = []
    for replica in case.replicas:
        refused, decided = replica.marks["T2"].t_ns, replica.marks["T3"].t_ns
        if refused is not None and decided is not None and decided - refused > case.ns(_STUCK_S):
            found.append((replica, refused, decided))
    if not found:
        return
    since, until = min(refused for _, refused, _ in found), max(decided for *_, decided in found)
    away = process_gone(case, _KARPENTER, since, until, part="karpenter")
    if not away:
        found = [each for each in found if not _room_on_its_way(case, each[1], each[2])]
    if not found:
        return
    longest = max(decided - refused for _, refused, decided in found)
    act = f"ordered a node for {count(len(found), 'replica')}, which had found no room, only {case.span(longest)} later"
    rows = tuple(
        Evidence(r.marks["T3"].ref, decided, f"{r.pod}: a node was decided {case.span(decided - refused)} late")
        for r, refused, decided in found[:SHOWN]
    )
    change = "run more than one replica of it, and alert when none leads" if away else "see its log for these pods"
    yield Suspect(PROVISIONER, act + away, since, LATE_REPLICAS, seen=rows, change=change)


def _room_on_its_way(case: Case, refused_ns: int, decided_ns: int) -> bool:
    """Whether another NodeClaim was there that had not shown yet what it has: a provisioner counts on it, rightly."""
    for claim in case.of("NodeClaim"):
        shown = claim.when(lambda each: condition(each, "Initialized").get("status") == "True")
        there = claim.born_ns < decided_ns and (claim.gone is None or claim.gone.t_ns > refused_ns)
        if there and (shown is None or shown.t_ns > refused_ns):
            return True
    return False


def _refused(case: Case, stuck: Stuck) -> Iterator[Suspect]:
    words = stuck[0][1]
    act = f"gave no instance for {_replicas(stuck)}: {words}"
    change = "add a pool to fall back to (another type, zone or capacity type), raise the quota, or keep spare capacity"
    yield _suspect(case, stuck, CLOUD, act, "T2", change=change)


def _node_start(case: Case, stuck: Stuck) -> Iterator[Suspect]:
    """Never registered is the instance's doing; registered and not Ready is its kubelet's."""
    launched = [c for c in case.of("NodeClaim") if condition(c.last, "Launched").get("status") == "True"]
    unborn = [c for c in launched if not _has_node(case, c)]
    late = [n for n in case.nodes.values() if n.born_ns > case.start_ns and not n.when(ready)]
    if late:
        names = [n.name for n in late]
        act = (
            f"of {listed(names)} never became Ready: {count(len(names), 'node')} registered, and {_replicas(stuck)}"
            " waited"
        )
        said = condition(late[0].last, "Ready").get("message") or condition(late[0].last, "Ready").get("reason") or ""
        row = Evidence(
            f"objects:{late[0].seen[-1].index}", late[0].born_ns, f"{late[0].name}: Ready is not True: {said}"
        )
        yield _suspect(
            case,
            stuck,
            KUBELET,
            act,
            "T4",
            since_ns=late[0].born_ns,
            seen=(row, *_rows(case, stuck)),
            scope=nodes_hit(case, names),
            otherwise=f"its network plugin or runtime: the node says {said or 'nothing'}",
            change="look at the kubelet's log on that node: container runtime, CNI",
        )
    elif unborn:
        since = min((e.t_ns for c in unborn if (e := c.when(_launched)) is not None), default=unborn[0].born_ns)
        act = f"started {count(len(unborn), 'instance')} that never registered as a Node: {_replicas(stuck)} waited"
        rows = tuple(
            Evidence(f"objects:{c.seen[-1].index}", c.born_ns, f"NodeClaim {c.name}: Launched, never Registered")
            for c in unborn
        )
        yield _suspect(
            case,
            stuck,
            f"{CLOUD}, or the image of the machine,",
            act,
            "T3",
            since_ns=since,
            seen=rows,
            scope=f"hit: {len(unborn)} of {count(len(launched), 'instance')} that were launched",
            change="look at the instance's console: machine image, user data, bootstrap token, network",
        )


def _launched(claim: dict[str, object]) -> bool:
    return condition(claim, "Launched").get("status") == "True"


def _has_node(case: Case, claim: Life) -> bool:
    return node_of_claim(claim) in case.nodes


def _no_gpu(case: Case, stuck: Stuck) -> Iterator[Suspect]:
    blank = [
        n
        for n in case.nodes.values()
        if n.born_ns > case.start_ns and n.when(ready) and not n.when(lambda o: allocatable(o) > 0)
    ]
    names = [n.name for n in blank]
    act = (
        f"never showed the GPUs of {listed(names) or 'a new node'}, Ready all the while: {_replicas(stuck)} waited"
        " for them"
    )
    since = min((e.t_ns for n in blank if (e := n.when(ready)) is not None), default=0)
    more = {"since_ns": since} if since else {}
    yield _suspect(
        case,
        stuck,
        DEVICE_PLUGIN,
        act,
        "T4",
        breaks=LATE_REPLICAS | {"device"},
        scope=nodes_hit(case, names),
        otherwise="the driver may be missing: the plugin's own log on that node would tell",
        change="see that its DaemonSet runs on new nodes and finds the driver",
        **more,
    )


def _placed(case: Case, stuck: Stuck) -> Iterator[Suspect]:
    act = f"neither placed nor refused {_replicas(stuck)}"
    yield _suspect(case, stuck, SCHEDULER, act, "T1", breaks=LATE_REPLICAS | {"gang"}, change="see the scheduler's log")


def _image(case: Case, stuck: Stuck) -> Iterator[Suspect]:
    nodes = sorted({r.node for r, _ in stuck if r.node})
    pods = [case.fates[r.pod] for r, _ in stuck if r.pod in case.fates]
    image = next(
        (c.get("image") for f in pods for c in f.life.last.get("spec", {}).get("containers") or ()), "the image"
    )
    act = f"of {listed(nodes)} did not get the image {image}: {_replicas(stuck)} had a node and never started"
    yield _suspect(
        case,
        stuck,
        f"{KUBELET} (image pull)",
        act,
        "T5",
        scope=_on_nodes(case, stuck),
        otherwise="the registry, or the way to it: the node's runtime log and its Events would tell",
        change=(
            "pull the image ahead, keep it small, or mirror it near the nodes; set a limit on how long a pull may hang"
        ),
    )


def _probe(case: Case, stuck: Stuck) -> Iterator[Suspect]:
    words = stuck[0][1].partition("(")[2].rpartition(")")[0]
    act = f"never passes in {_replicas(stuck)}: {words}"
    scope = _on_nodes(case, stuck)
    parted = "not hit" in scope
    otherwise = (
        "same template, other nodes: what differs is the node (its kubelet, its proxy), or what was started there; "
    )
    otherwise += "the request as the server logged it would tell, and the image digest"
    change = "" if parted else "look at the readiness probe's path and port: the server answers, and with an error"
    yield _suspect(case, stuck, PROBE, act, "T6", scope=scope, otherwise=otherwise if parted else "", change=change)


def _traffic(case: Case, stuck: Stuck) -> Iterator[Suspect]:
    """Ready, and no token from it: never an endpoint, or an endpoint that the router did not use."""
    open_ = _ever_open(case)
    out = [(r, w) for r, w in stuck if r.pod not in open_]
    unused = [(r, w) for r, w in stuck if r.pod in open_ and _others_served(case, r)]
    if out:
        act = f"never listed {count(len(out), 'Ready pod')} as ready in an EndpointSlice"
        yield _suspect(
            case,
            out,
            ENDPOINTS,
            act,
            "T7",
            scope=_on_nodes(case, out),
            change="see its log, and whether the Service's selector and the slice's limit fit the pods",
        )
    if unused:
        act = (
            f"sent no request to {count(len(unused), 'added pod')}, Ready and in the EndpointSlice, while the others"
            " served"
        )
        yield _suspect(
            case,
            unused,
            GATEWAY,
            act,
            "T7",
            breaks=LATE_REPLICAS | {"routing"},
            scope=_on_nodes(case, unused),
            change="see its watch of EndpointSlices: it goes on with the endpoints that it knew at first",
        )


def _others_served(case: Case, replica: Replica) -> bool:
    """Whether anybody asked for anything while it was there: else that it got nothing says nothing."""
    since = replica.marks["T7"].t_ns
    sent = case.rows.numbers("sent_ns")[~case.rows.missing("pod")]
    return since is not None and int((sent > since).sum()) >= _ASKED


def _ever_open(case: Case) -> set[str]:
    return {
        str((endpoint.get("targetRef") or {}).get("name") or "")
        for slice_ in case.of("EndpointSlice")
        for event in slice_.seen
        for endpoint in event.object.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready")
    }


def _slow_to_load(case: Case) -> Iterator[Suspect]:
    """The container runs, and its probe cannot reach it for minutes: the server loads, on every node alike or not."""
    took: dict[str, int] = {}
    since: list[int] = []
    until = case.history.recorded_until_ns
    for replica in case.replicas:
        begun, warm = replica.marks["T6"].t_ns, replica.marks["T7"].t_ns
        ended = replica.withdrawn_ns if replica.withdrawn_ns is not None else until
        if begun is not None and (warm is not None or ended - begun > case.ns(_LOADS_S)) and not _probed(replica):
            took[replica.pod] = (warm or ended) - begun
            since.append(begun)
    slow = {pod: ns for pod, ns in took.items() if ns > case.ns(_LOADS_S)}
    if not slow:
        return
    typical = case.span(round(median(slow.values())))
    act = (
        f"took {typical} to load its model in {count(len(slow), 'pod')} (median, from the start of the container to"
        " Ready)"
    )
    rows = tuple(
        Evidence(
            f"objects:{case.fates[pod].life.seen[-1].index}",
            None,
            f"{pod}: {case.span(ns)} from running to Ready",
            {"pod": pod},
        )
        for pod, ns in list(slow.items())[:SHOWN]
    )
    scope = pods_hit(case, slow, list(took))
    yield Suspect(
        SERVER,
        act,
        min(since),
        LATE_REPLICAS,
        scope=scope,
        seen=rows,
        change="keep the weights on local disk or in memory, share a warm cache, or keep spare replicas Ready",
    )


def _probed(replica: Replica) -> bool:
    """Whether its server answered a probe with an error: then it is not loading."""
    return "statuscode" in replica.waits_for


_TELLERS: dict[Wait, Callable[[Case, Stuck], Iterator[Suspect]]] = {
    Wait.NO_NODE_DECIDED: _no_order,
    Wait.CLOUD_QUOTA: _refused,
    Wait.CLOUD_CAPACITY: _refused,
    Wait.NODE_START: _node_start,
    Wait.DEVICE_PLUGIN: _no_gpu,
    Wait.PLACEMENT: _placed,
    Wait.SCHEDULER: _placed,
    Wait.IMAGE: _image,
    Wait.PROBE: _probe,
    Wait.TRAFFIC: _traffic,
}
