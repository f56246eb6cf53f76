"""The stories of fails of `pdb`, `gang`, `scale_up` and `slo`, told from what these checks found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from harness.checks.rows import Request
from harness.checks.story import clock, moment, tell, who
from harness.checks.units import both, count, listed
from harness.history.autoscaler import autoscalers
from harness.history.lives import condition, node_of
from harness.history.scaleup import STAGES, Replica

if TYPE_CHECKING:
    from harness.checks.gang import Gang, Partial
    from harness.checks.gang_generations import Mixed
    from harness.checks.gang_topology import Apart
    from harness.checks.pdb import Disruption
    from harness.checks.unanswered import Unanswered
    from harness.history.lives import Json, Life
    from harness.history.reader import History

_OBJECTS = 8
QUOTA = "quota"
PROBE = "its probe"


def pdb_story(history: History, bad: Sequence[tuple[Life, Disruption]]) -> str:
    budget, first = bad[0]
    node = node_of(first.pod.last)
    past = "past the Eviction API" in first.how
    before = first.allowed_before
    allowed = "the budget had no status" if before is None else f"the budget's status had just allowed {before}"
    return tell(
        promised=f"budget {budget.name} keeps {first.desired} pods healthy through every voluntary disruption",
        happened=f"{first.pod.name} was {first.how} and left {first.healthy_after} healthy; {len(bad)} such in all",
        when=moment(history, first.event.t_ns),
        objects=[budget.name, *(d.pod.name for _, d in bad), node][:_OBJECTS],
        cause=f"the pod was {first.how}; {allowed}",
        change="drain through the Eviction API and try again on 429"
        if past
        else "find out who admitted the eviction: the budget's status lagged, or two evictions were admitted at once",
    )


def gang_story(history: History, broken: Sequence[tuple[Gang, Partial]], limit_s: float, stuck: Sequence[Gang]) -> str:
    gang, partial = broken[0]
    span = both(partial.length_ns, history.run.time_scale)
    waiting = [m.name for m in gang.members if m.when(lambda pod: not node_of(pod)) and not node_of(m.last)]
    late = f"; {count(len(waiting), 'member')} never got a node" if waiting else ""
    if partial.lost and (preempted := [m.name for m in gang.members if m.when(_preempted)]):
        cause = f"the scheduler preempted {listed(preempted)} and left the rest"
        change = "have the gang disrupted as one (native gangs: disruptionMode: {all: {}} of the PodGroup)"
    elif partial.lost:
        cause = f"a member was lost and the rest stayed{late}"
        change = "restart or evict the rest when a member is lost and cannot be replaced in time"
    else:
        cause = f"its members were bound one by one{late}"
        change = "let a scheduler place the group that knows gangs, and only when all of it fits"
    if stuck:
        names = listed([g.group.name for g in stuck])
        cause = f"{names} were bound one by one into room for one of them: each holds what another waits for"
    return tell(
        promised=f"a gang holds GPUs for {gang.need} members or none, but for {limit_s:.0f} s at most",
        happened=f"{gang.group.name} held {partial.bound} of {gang.need} for {span}; {len(broken)} such in all",
        when=moment(history, partial.start_ns),
        objects=[*(g.group.name for g in stuck), gang.group.name, *(m.name for m in gang.members)][:_OBJECTS],
        cause=cause,
        change=change,
    )


def _preempted(pod: Json) -> bool:
    return condition(pod, "DisruptionTarget").get("reason") == "PreemptionByScheduler"


def spread_story(history: History, apart: Apart) -> str:
    group = apart.group
    return tell(
        promised=f"all members of {group.name} are within one {apart.key}",
        happened=f"they were in {listed(list(apart.domains))}",
        when=moment(history, apart.event.t_ns),
        objects=[group.name, *(member.name for member in group.members)][:_OBJECTS],
        cause="the scheduler did not heed the constraint of its PodGroup",
        change="turn on TopologyAwareWorkloadScheduling for the scheduler too, not for the API server alone",
    )


def mixed_story(history: History, found: Mixed) -> str:
    return tell(
        promised=f"{found.group.name} is made anew as a whole when it loses a member",
        happened=str(found),
        when=moment(history, found.event.t_ns),
        objects=[found.group.name, found.new, *found.old][:_OBJECTS],
        cause="whoever restarts the group did not see the loss, and its StatefulSet filled the place alone",
        change="delete the group's leader pod; more than one replica of the controller sees what one misses",
    )


_SLOW = {
    "quota": "the namespace's quota and what admits pods, such as gates and webhooks",
    PROBE: "the readiness probe's path, port and limits: the server answers, and with an error",
    "T0'": "the metrics path (see `metrics_path`)",
    "T1": "the autoscaler's sync period, target and policies",
    "T2": "the scheduler",
    "T3": "the provisioner's batching, limits and quota",
    "T4": "the cloud's stock: a second pool or warm nodes",
    "T5": "the node's start: image of the machine, device plugin",
    "T6": "the image: size, cache, pulling ahead",
    "T7": "the model's load: weights on local disk, warm-up",
    "T8": "readiness probe and routing",
}


def scale_up_story(history: History, late: Sequence[Replica], limit_s: float, *, by_stage: bool) -> str:
    first = late[0]
    stage, took_ns = slowest_stage(first)
    name = first.pod or "a replica without a pod"
    done = first.served_ns is not None
    if done:
        took = both(took_ns, history.run.time_scale)
        cause = f"its longest stage was up to {stage}: {took}" if stage else ""
        cause = f"its pod was made only {took} after it was decided" if stage == QUOTA else cause
    else:
        cause = f"it waited for {first.waits_for}"
        stage = next((s for s in STAGES if first.marks[s].missed), stage)
        stage = next((what for what in (QUOTA, PROBE) if first.waits_for.startswith(what)), stage)
    stages = ", and each stage of it takes no longer than its own limit" if by_stage else ""
    served = f"served {moment(history, first.served_ns)}" if done else "never served"
    return tell(
        promised=f"an added replica serves its first token within {limit_s:.0f} s of the load step{stages}",
        happened=f"{name} {served}; {count(len(late), 'replica')} not in time",
        when=f"the load step was {moment(history, first.start_ns)}" if first.start_ns is not None else "",
        objects=[text for replica in late for text in (replica.pod, replica.node) if text][:_OBJECTS],
        cause=cause,
        change=f"look at {_SLOW[stage]}" if stage in _SLOW else "",
    )


def never_decided_story(history: History, rise: Unanswered, sentence: str, limit_s: float) -> str:
    says = [
        f"{c.get('type')} {c.get('status')} ({c.get('reason')})"
        for scaler in autoscalers(history)
        for c in (scaler.at(rise.until_ns) or {}).get("status", {}).get("conditions") or ()
    ]
    names = listed([who(scaler) for scaler in autoscalers(history)])
    return tell(
        promised=f"an added replica serves its first token within {limit_s:.0f} s of the load step",
        happened=sentence,
        when=f"the metric was above its target from {clock(history, rise.since_ns)}",
        objects=[who(scaler) for scaler in autoscalers(history)],
        cause=f"{names} could read the need and did not act; it said: {listed(says)}" if says else "",
        change=f"look at the behavior policies of {names}, at its rights on scale, and at its controller's log",
    )


def slowest_stage(replica: Replica) -> tuple[str, int]:
    """The mark that came longest after the one before it; ``QUOTA`` stands for the making of the pod."""
    known = [(name, t) for name in STAGES if (t := replica.marks[name].t_ns) is not None]
    if (made_ns := replica.created_ns) is not None and not replica.marks["T1"].missed:
        at = next((i + 1 for i, (name, _) in enumerate(known) if name == "T1"), None)
        known[at:at] = [(QUOTA, made_ns)] if at is not None else []
    steps = [(after[1] - before[1], after[0]) for before, after in pairwise(known)]
    longest, name = max(steps, default=(0, ""))
    return name, longest


def slo_story(history: History, late: Sequence[Request], texts: Sequence[str], phase: str) -> str:
    """The cause is told only as far as requests tell it: how they ended, and where they were."""
    failed = Counter(row.outcome for row in late if not row.ok)
    pods = Counter(row.pod for row in late if row.pod)
    slow = sum(1 for row in late if row.ok)
    parts = [f"{n} ended as {name}" for name, n in failed.most_common(3)] + (
        [f"{slow} came whole but late"] if slow else []
    )
    first = min(late, key=lambda row: row.intended_ns, default=None)
    where = f"{pods.most_common(1)[0][1]} of them on {pods.most_common(1)[0][0]}" if pods else ""
    return tell(
        promised="the limits hold for the promised share of requests",
        happened="; ".join(texts),
        when=f"the first of them was planned {moment(history, first.intended_ns)}" if first else "",
        objects=[str(pod) for pod, _ in pods.most_common(5)],
        cause=f"of {len(late)} late or failed in {phase}, {', '.join(parts)}{'; ' + where if where else ''}"
        if late
        else "",
        change="see `scale_up`, `capacity` and `graceful_drain` for what the cluster did meanwhile",
    )
