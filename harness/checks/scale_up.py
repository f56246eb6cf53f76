"""Every added replica serves its first token within the promised time of the load step that asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from harness.checks.stage_limits import Stages, limited, stages_of, untested
from harness.checks.stories import never_decided_story, scale_up_story
from harness.checks.story import who
from harness.checks.unanswered import Unanswered, unanswered_rise
from harness.checks.units import both, clock_s, count, listed, scenario_s, span_ns
from harness.history.autoscaler import autoscalers
from harness.history.replica_sets import Origin
from harness.history.scaleup import STAGES, Replica, replicas_that_came, waiting_at
from harness.verdict import Evidence, Finding, Role, Status, Value

if TYPE_CHECKING:
    from harness.history.reader import History
    from harness.spec.checks import ScaleUpSpec

NEEDS = ("load_offered", "machine_did_not_stall", "steady_before", "clocks_agree")
_BLINDING = frozenset({"Pod", "Node", "ReplicaSet", "Deployment", "EndpointSlice", "NodeClaim"})
_ORDER = {Status.FAIL: 0, Status.UNKNOWN: 1, Status.PASS: 2}
_NAMED = 5
"""Replicas that the sentence names; the others stand in the evidence."""


@dataclass(frozen=True, slots=True)
class Answer:
    replica: Replica
    status: Status
    why: str
    stages: Stages


def scale_up(history: History, spec: ScaleUpSpec) -> Finding:
    """Judged on replicas that were added to carry load; replacements of pods that went are shown apart.

    A sustained rise that the autoscaler could read and had room for, but for which no replica was ever decided, is a
    fail. UNKNOWN when none was added otherwise, when no load step was marked before one, when the run ended (or its pod
    was withdrawn) before the time was up, or when the recorder was blind while a late one should have been seen: also
    when no answer names its pod, or no endpoint was recorded at all, so that nobody could have seen it serve.

    A limit on a stage (``readable_s_max`` to T0', ``decided_s_max`` T1, ``claimed_s_max`` T3, ``registered_s_max`` T4,
    ``usable_s_max`` T5, ``started_s_max`` T6, ``loaded_s_max`` T7, ``served_s_max`` T8; the marks are those of
    ``docs/metrics.md``) is judged for each added replica that needed the stage, also for one that was in time as a
    whole. One that none needed leaves the check unknown.
    """
    came = replicas_that_came(history)
    limit_ns = span_ns(spec.ready_s_max, history.run.time_scale)
    added = [replica for replica in came if replica.origin is Origin.ADDED]
    replaced = [replica for replica in came if replica.origin is Origin.REPLACEMENT]
    if not added and (rise := unanswered_rise(history, limit_ns)) is not None:
        return _never_decided(history, spec, rise, replaced)
    answers = sorted((_judge(history, replica, spec) for replica in added), key=lambda answer: _ORDER[answer.status])
    status = answers[0].status if answers else Status.UNKNOWN
    evidence = (
        *(_row(history, a.replica, f"added, {a.why}", _late(history, a, spec)) for a in answers),
        *(_row(history, replica, f"replacement of {replica.predecessor}") for replica in replaced),
    )
    sentence = _sentence(history, spec, answers, replaced)
    if status is Status.PASS and (open_ := untested([answer.stages for answer in answers], spec)):
        status = Status.UNKNOWN
        sentence += f"; but no added replica put {listed(open_)} to the test"
    numbers = _numbers(history, spec, added, replaced)
    late = [answer.replica for answer in answers if answer.status is Status.FAIL]
    story = scale_up_story(history, late, spec.ready_s_max, by_stage=limited(spec)) if late else ""
    return Finding("scale_up", Role.CHECK, status, sentence, len(added), numbers, evidence, NEEDS, story=story)


def _never_decided(history: History, spec: ScaleUpSpec, rise: Unanswered, replaced: list[Replica]) -> Finding:
    scale = history.run.time_scale
    names = listed([who(scaler) for scaler in autoscalers(history)])
    above = both(rise.until_ns - rise.since_ns, scale)
    sentence = (
        f"the load rose, {names} could read more than its target for {above}, "
        f"and no replica was decided ({rise.replicas} of at most {rise.replicas_max})"
    )
    evidence = (
        Evidence("marks:load_step", rise.step_ns, "the load rose"),
        Evidence("samples:custom.metrics", rise.since_ns, "the metric was readable above the target from here"),
        Evidence("samples:custom.metrics", rise.until_ns, "and until here"),
    )
    numbers = _numbers(history, spec, [], replaced)
    story = never_decided_story(history, rise, sentence, spec.ready_s_max)
    return Finding("scale_up", Role.CHECK, Status.FAIL, sentence, 1, numbers, evidence, NEEDS, story=story)


def took_ns(replica: Replica) -> int | None:
    """From the load step (or the predecessor's going) to the first served token."""
    if replica.start_ns is None or replica.served_ns is None:
        return None
    return replica.served_ns - replica.start_ns


def _judge(history: History, replica: Replica, spec: ScaleUpSpec) -> Answer:
    """As a whole and by its stages: the worse of the two answers, and where both are as bad, both reasons."""
    status, why = _judge_whole(history, replica, span_ns(spec.ready_s_max, history.run.time_scale))
    stages = stages_of(history, replica, spec)
    by_stage, reasons = stages.status, stages.why
    start_ns, end_ns = replica.start_ns or 0, replica.served_ns or history.recorded_until_ns
    if by_stage is Status.FAIL and _blind(history, start_ns, end_ns):
        by_stage, reasons = Status.UNKNOWN, (*reasons, "but the recorder was blind")
    if not reasons or _ORDER[by_stage] > _ORDER[status]:
        return Answer(replica, status, why, stages)
    return Answer(replica, by_stage, f"{why}, and {', '.join(reasons)}", stages)


def _judge_whole(history: History, replica: Replica, limit_ns: int) -> tuple[Status, str]:
    scale = history.run.time_scale
    took, start = took_ns(replica), replica.start_ns
    if start is None:
        return Status.UNKNOWN, f"{_name(replica)} was added, but no load step was marked before it"
    if took is not None and took <= limit_ns:
        return Status.PASS, f"{_name(replica)} served after {both(took, scale)}"
    until = start + limit_ns
    if took is not None:
        late = f"{_name(replica)} served only after {both(took, scale)}"
        return (
            (Status.UNKNOWN, f"{late}, but the recorder was blind")
            if _blind(history, start, until)
            else (Status.FAIL, late)
        )
    waited = f"{_name(replica)} never served: it waited for {waiting_at(history, replica, until).words}"
    if replica.withdrawn_ns is not None and replica.withdrawn_ns < until:
        return Status.UNKNOWN, f"{waited}; it was withdrawn after {both(replica.withdrawn_ns - start, scale)}"
    if history.recorded_until_ns < until:
        return Status.UNKNOWN, f"{waited}, but the recording ends before its time was up"
    if _blind(history, start, until):
        return Status.UNKNOWN, f"{waited}, but the recorder was blind"
    if not replica.marks["T7"].missed and (hidden := _hidden(history)):
        return Status.UNKNOWN, f"{_name(replica)} was ready, but {hidden}"
    return Status.FAIL, waited


def _hidden(history: History) -> str:
    """Why serving could not have been seen, of any pod."""
    if not any(event.object.get("endpoints") for event in history.objects.of_kind("EndpointSlice")):
        return "no endpoint was recorded, so whether it was routed is not known"
    answered = history.requests[history.requests["first_token_ns"].notna()]
    if len(answered) and answered["pod"].isna().all():
        return "no answer names its pod, so whether it served is not known"
    return ""


def _blind(history: History, start_ns: int, end_ns: int) -> bool:
    return any(g.kind in _BLINDING and g.t_ns >= start_ns and (g.since_ns or 0) <= end_ns for g in history.gaps)


def _name(replica: Replica) -> str:
    return replica.pod or "a replica without a pod"


def _sentence(history: History, spec: ScaleUpSpec, answers: list[Answer], replaced: list[Replica]) -> str:
    scale = history.run.time_scale
    times = [took for answer in answers if (took := took_ns(answer.replica)) is not None]
    apart = ""
    if replaced:
        came = sum(1 for replica in replaced if replica.served_ns is not None)
        apart = f"; {count(len(replaced), 'replacement')} reported apart"
        apart += f", of which {came or 'none'} served" if came < len(replaced) else ""
    if not answers:
        return f"no replica was added during the load, so scaling up was not put to the test{apart}"
    troubled = [answer.why for answer in answers if answer.status is not Status.PASS]
    if troubled:
        lead = (
            f"{len(troubled)} of {count(len(answers), 'added replica')} not in time (limit {spec.ready_s_max:.0f} s): "
        )
        rest = len(troubled) - _NAMED
        return lead + "; ".join(troubled[:_NAMED]) + (f"; and {rest} more" if rest > 0 else "") + apart
    return (
        f"{count(len(answers), 'added replica')} served a first token within {both(max(times), scale)} of the load "
        f"step (limit {spec.ready_s_max:.0f} s; median {scenario_s(round(median(times)), scale):.1f} s){apart}"
    )


def _numbers(history: History, spec: ScaleUpSpec, added: list[Replica], replaced: list[Replica]) -> dict[str, Value]:
    scale = history.run.time_scale
    times = [took for replica in added if (took := took_ns(replica)) is not None]
    again = [took for replica in replaced if (took := took_ns(replica)) is not None]
    return {
        "ready_s_max": spec.ready_s_max,
        "added": len(added),
        "added_served": len(times),
        "added_ready_s_worst": scenario_s(max(times), scale) if times else None,
        "added_ready_s_median": scenario_s(round(median(times)), scale) if times else None,
        "added_ready_clock_s_worst": clock_s(max(times)) if times else None,
        "replacements": len(replaced),
        "replacements_served": len(again),
        "replacement_ready_s_worst": scenario_s(max(again), scale) if again else None,
        "time_scale": scale,
    }


def _late(history: History, answer: Answer, spec: ScaleUpSpec) -> dict[str, Value]:
    """What one that is late waited for when its time was up, by one word."""
    replica = answer.replica
    if answer.status is not Status.FAIL or replica.start_ns is None:
        return {}
    due_ns = replica.start_ns + span_ns(spec.ready_s_max, history.run.time_scale)
    took = took_ns(replica)
    if took is not None and replica.start_ns + took <= due_ns:  # in time as a whole: a stage of it was late
        due_ns = answer.stages.due_ns or due_ns
    return {"waited_for": waiting_at(history, replica, due_ns).what.value}


def _row(history: History, replica: Replica, what: str, more: dict[str, Value] | None = None) -> Evidence:
    """One replica with all its marks, in scenario seconds since its clock started."""
    scale, start = history.run.time_scale, replica.start_ns
    facts: dict[str, Value] = {"pod": replica.pod, "node": replica.node, "origin": str(replica.origin), **(more or {})}
    for name in STAGES:
        mark = replica.marks[name]
        if mark.t_ns is not None and start is not None:
            facts[name] = round(scenario_s(mark.t_ns - start, scale), 1)
        else:
            facts[name] = "missed" if mark.missed else f"not needed: {mark.note}"
    ref = next((replica.marks[name].ref for name in reversed(STAGES) if replica.marks[name].ref), "")
    waits = f"; waits for {replica.waits_for}" if replica.waits_for else ""
    return Evidence(
        ref, replica.served_ns or start, f"{_name(replica)} on {replica.node or 'no node'}: {what}{waits}", facts
    )
