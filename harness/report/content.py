"""What a report says, without any markup: the same tables feed the page and the summary. Pure: no clock, no files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from harness.checks.rows import rows_of
from harness.checks.scale_up import took_ns
from harness.checks.units import clock_s, scenario_s
from harness.history.replica_sets import Origin
from harness.history.scaleup import STAGES, Replica, replicas_that_came
from harness.history.tables import FaultStage
from harness.report.streams import Trouble, troubles
from harness.verdict import Finding, Role, Status, Verdict

if TYPE_CHECKING:
    from harness.history.reader import History

NONE = "\u2013"
"""For a cell in which nothing belongs."""
SYMBOLS = {Status.PASS: "✔", Status.FAIL: "✖", Status.UNKNOWN: "?"}
STAGE_WORDS = {
    "T0": "load rises",
    "T0'": "metric readable",
    "T1": "replica decided",
    "T2": "no room for it",
    "T3": "node decided",
    "T4": "node registered",
    "T5": "node usable",
    "T6": "container runs",
    "T7": "model loaded",
    "T8": "first token served",
}
TROUBLED_ROWS = 200

DEFINITIONS = (
    ("TTFT", "first token - intended time of the request, in real milliseconds; the client's own lateness counts."),
    ("TPOT", "(last token - first token) / (output tokens - 1); not measured for answers of one token."),
    ("ITL", "single gaps between chunks; a request is late when its largest gap is over the limit."),
    ("Good", "complete (usage, finish reason and [DONE] agree) and within the loosest limit of each metric."),
    (
        "Late",
        "over the limit, or failed, timed out, or never sent; requests that the client hung up by plan are left out.",
    ),
    (
        "Quantile limits",
        "claims about a share: judged by one-sided 95 % Clopper-Pearson bounds. The measured percentile is a figure "
        "with its n, never the judgement; requests of one run are not independent.",
    ),
    ("Offered, served", "arrivals by plan, and whole answers by their end, per second of the clock."),
    ("Times of marks", "when the recorder's watch received the change; API timestamps are not used as a clock."),
    (
        "Scenario seconds",
        "durations as the experiment writes them: clock seconds times time_scale. Token latencies are never scaled.",
    ),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """``note`` explains a cell that would be blank otherwise; ``status`` colours it."""

    text: str
    note: str = ""
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class Table:
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """One heading, one sentence that says the most important thing, then perhaps a table."""

    title: str
    lead: str
    table: Table | None = None
    notes: tuple[str, ...] = field(default_factory=tuple)


def row_of(*texts: object) -> tuple[Cell, ...]:
    return tuple(text if isinstance(text, Cell) else Cell(show(text)) for text in texts)


def show(value: object) -> str:
    """A value as people read it; what was not measured says so."""
    if value is None:
        return "not measured"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 100 else f"{value:.0f}"
    return str(value)


def status_of(finding: Finding) -> Status:
    """What the merge rule made of it."""
    return finding.judged or finding.status


def more(finding: Finding, shown: int) -> str:
    """What stands after so many rows of evidence; empty where there are no more."""
    left = len(finding.evidence) - shown
    return f"… and {left} more, see `gpu-harness explain <this folder> {finding.check}`" if left > 0 else ""


def by_role(verdict: Verdict, role: Role) -> list[Finding]:
    """Failed first, then unknown, then passed; otherwise in the order asked for."""
    order = {Status.FAIL: 0, Status.UNKNOWN: 1, Status.PASS: 2}
    return sorted((f for f in verdict.findings if f.role is role), key=lambda f: order[status_of(f)])


def facts(history: History, plan: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The line of facts under the verdict."""
    run = history.run
    span = run.load_end_ns - run.load_start_ns
    commit = f"{run.commit[:12] or 'not in a repository'}{' (with local changes)' if run.dirty else ''}"
    return [
        ("target", run.target),
        ("started", run.started_utc),
        ("load", f"{scenario_s(span, run.time_scale):.0f} scenario s = {clock_s(span):.1f} s on the clock"),
        ("time_scale", f"{run.time_scale:g} (one clock second is {run.time_scale:g} scenario seconds)"),
        ("seed", str(run.seed)),
        ("commit", commit),
        ("requests", f"{run.planned} planned{_peak(plan)}"),
    ]


def _peak(plan: Mapping[str, Any]) -> str:
    stats = plan.get("schedule", {}).get("stats", {}) if isinstance(plan.get("schedule"), dict) else {}
    ratio, peak = stats.get("peak_to_mean"), stats.get("peak_per_s")
    return f", peak {peak:g} per second, {ratio:.1f} times the mean" if ratio and peak else ""


def outcomes(history: History) -> Section:
    table = rows_of(history)
    tally = Counter(str(outcome) for outcome in table.texts("outcome"))
    by_phase = Counter(zip(table.texts("outcome"), table.texts("phase"), strict=True))
    total = " + ".join(f"{n} {name}" for name, n in tally.most_common()) or "nothing"
    phases = [phase.name for phase in history.phases]
    lines = tuple(row_of(name, n, *(by_phase[name, phase] for phase in phases)) for name, n in tally.most_common())
    return Section("Requests", f"{history.run.planned} planned = {total}.", Table(("outcome", "all", *phases), lines))


def troubled(history: History, verdict: Verdict) -> Section:
    """Lost, failed and late requests with pod and node; the lost first, and of them those that nothing explains."""
    found = troubles(history, verdict)
    # What graceful_drain counts is what it shows as lost: a request refused at the door is not, nor one set aside.
    judged = any(finding.check == "graceful_drain" for finding in verdict.findings)
    lost = sum(1 for t in found if (t.cause is not None if judged else t.row.cut))
    late = sum(1 for t in found if t.row.ok)
    failed = len(found) - lost - late
    unexplained = sum(1 for t in found if t.unexplained)
    title = "Lost or late requests"
    if history.requests.empty:
        return Section(title, "Not known: the history has no request.")
    if not found:
        return Section(title, "None: every request was answered whole and in time.")
    lead = f"{lost} lost, {failed} failed otherwise, {late} late of {len(history.requests)}."
    if judged and lost:
        lead = f"{unexplained} unexplained. {lead}" if unexplained else f"{lead} Each lost one has its cause."
    more = len(found) - TROUBLED_ROWS
    notes = (f"{more} more are in history/requests.parquet.",) if more > 0 else ()
    lines = tuple(_troubled_row(history, t) for t in found[:TROUBLED_ROWS])
    columns = ("request", "planned at, scenario s", "phase", "outcome", "why", "pod", "node", "TTFT, ms")
    return Section(title, lead, Table(columns, lines), notes)


def _troubled_row(history: History, found: Trouble) -> tuple[Cell, ...]:
    row = found.row
    return row_of(
        row.request_id,
        f"{_since_load(history, row.intended_ns):.1f}",
        row.phase,
        Cell(row.outcome, row.reason or "", None if row.ok else Status.FAIL),
        found.why,
        row.pod or NONE,
        row.node or NONE,
        NONE if row.ttft_ms is None else f"{row.ttft_ms:.0f}",
    )


def replica_sections(history: History) -> tuple[Section, Section]:
    came = replicas_that_came(history)
    added = [replica for replica in came if replica.origin is Origin.ADDED]
    replaced = [replica for replica in came if replica.origin is Origin.REPLACEMENT]
    first = Section(
        "Added replicas",
        _replica_lead(history, added, "the load step")
        if added
        else "None: the autoscaler added no replica during the load.",
        _replica_table(history, added),
        _mark_notes(added),
    )
    second = Section(
        "Replacements",
        _replica_lead(history, replaced, "its predecessor's deletionTimestamp") + " Reported apart from added capacity."
        if replaced
        else "None: no pod of the workload had to be replaced.",
        _replica_table(history, replaced),
        _mark_notes(replaced),
    )
    return first, second


def _replica_lead(history: History, replicas: Sequence[Replica], start: str) -> str:
    times = [took for replica in replicas if (took := took_ns(replica)) is not None]
    scale = history.run.time_scale
    words = f"{len(times)} of {len(replicas)} served a first token"
    if times:
        words += (
            f", the slowest {scenario_s(max(times), scale):.1f} scenario s ({clock_s(max(times)):.1f} s on the clock)"
        )
        words += f" after {start}"
    return words + f". Marks are scenario seconds since {start}."


def _replica_table(history: History, replicas: Sequence[Replica]) -> Table | None:
    """What a replica waits for stands beside its name, where a narrow screen shows it; left out when none waits."""
    if not replicas:
        return None
    waiting = any(replica.waits_for for replica in replicas)
    words = STAGE_WORDS | ({"T0": "predecessor goes"} if replicas[0].origin is Origin.REPLACEMENT else {})
    stages = (f"{name} {words[name]}" for name in STAGES)
    columns = ("pod", "node", *(("waits for",) if waiting else ()), *stages)
    return Table(columns, tuple(_replica_row(history, replica, waiting) for replica in replicas))


def _replica_row(history: History, replica: Replica, waiting: bool) -> tuple[Cell, ...]:
    pod = Cell(replica.pod or "no pod", f"replaces {replica.predecessor}" if replica.predecessor else "")
    marks = [_mark_cell(history, replica, name) for name in STAGES]
    waits = Cell(replica.waits_for, "", Status.FAIL) if replica.waits_for else Cell(NONE)
    return (pod, Cell(replica.node or NONE), *((waits,) if waiting else ()), *marks)


def _mark_cell(history: History, replica: Replica, name: str) -> Cell:
    mark, start = replica.marks[name], replica.start_ns
    if mark.t_ns is not None and start is not None:
        return Cell(f"{scenario_s(mark.t_ns - start, history.run.time_scale):.1f}", mark.note)
    if mark.missed:
        return Cell("missed", mark.note, Status.FAIL)
    return Cell("not needed", mark.note)


def _mark_notes(replicas: Sequence[Replica]) -> tuple[str, ...]:
    """Why a mark was not needed, each reason said once."""
    reasons: dict[str, tuple[list[str], list[str]]] = {}
    for replica in replicas:
        for name in STAGES:
            mark = replica.marks[name]
            if not mark.needed and mark.t_ns is None and mark.note:
                names, pods = reasons.setdefault(mark.note, ([], []))
                names += [name] if name not in names else []
                pods += [replica.pod] if replica.pod not in pods else []
    return tuple(
        f"{', '.join(names)} not needed by {', '.join(pods)}: {note}." for note, (names, pods) in reasons.items()
    )


def faults(history: History, plan: Mapping[str, Any]) -> Section:
    by_id: dict[str, dict[str, str]] = {}
    about: dict[str, tuple[str, str, str]] = {}
    for event in history.faults:
        stages = by_id.setdefault(event.fault_id, {})
        when = f"{_since_load(history, event.t_ns):.1f}"
        stages.setdefault(event.stage.value, when)
        known = about.get(event.fault_id, ("", "", ""))
        about[event.fault_id] = (event.fault, ", ".join(event.targets) or known[1], event.fidelity or known[2])
    shown = [stage.value for stage in FaultStage if any(stage.value in stages for stages in by_id.values())]
    lines = tuple(
        row_of(fault_id, about[fault_id][1] or NONE, about[fault_id][2] or NONE, *(stages.get(s, NONE) for s in shown))
        for fault_id, stages in by_id.items()
    )
    planned = len(plan.get("faults") or ()) if isinstance(plan.get("faults"), list) else 0
    lead = f"{len(by_id)} of {planned or len(by_id)} planned; times in scenario seconds since the load began."
    return Section(
        "Faults", lead if by_id or planned else "None was planned.", Table(("fault", "on", "fidelity", *shown), lines)
    )


def real_and_emulated(history: History) -> Section:
    run = history.run
    lead = (
        f"Target {run.target}. A verdict holds for what was real; of what was emulated it says what the emulation does."
    )
    lines = (
        row_of("real", ", ".join(run.real) or "not stated"),
        row_of("emulated", ", ".join(run.emulated) or "nothing"),
        *(row_of(f"fault {name}", fidelity or "not stated") for name, fidelity in sorted(run.fidelity.items())),
    )
    return Section("What was real", lead, Table(("", ""), lines))


def repeat(history: History) -> Section:
    run = history.run
    lines = (
        row_of("command", run.command or "not recorded"),
        row_of("seed", run.seed),
        row_of("commit", f"{run.commit or 'not in a repository'}{', with local changes' if run.dirty else ''}"),
        row_of("experiment", run.experiment),
        row_of("versions", ", ".join(f"{name} {version}" for name, version in sorted(run.versions.items()))),
        row_of("judge again", "gpu-harness check DIR (this folder; needs no cluster)"),
    )
    return Section(
        "How to repeat", "The seed fixes the plan (arrivals, lengths, targets), not the run.", Table(("", ""), lines)
    )


def _since_load(history: History, t_ns: int) -> float:
    return scenario_s(t_ns - history.run.load_start_ns, history.run.time_scale)
