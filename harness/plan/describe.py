"""A plan in words, for a terminal or a log: plain text, no colours."""

from __future__ import annotations

from typing import Any

from harness.plan.drawn import AtBound, TurnsDrawn
from harness.plan.mixed import MixStats, mix_stats
from harness.plan.plan import Plan, PlannedFault
from harness.printable import line

_WORTH_SAYING = 0.005


def describe(plan: Plan) -> str:
    stats: dict[str, Any] = dict(plan.stats)
    lines = [
        line(plan.title),
        f"  seed        {plan.seed}",
        f"  time        {plan.duration_s:g} scenario s in {plan.clock_s:g} clock s (time_scale {plan.time_scale:g})",
        *_under("load", _load(plan)),
        f"  arrivals    {stats['rows']} requests, {stats['mean_per_s']:g}/s on average, {stats['peak_per_s']}/s at the"
        f" peak (peak-to-mean {stats['peak_to_mean']:.1f}{_promised(plan)}; CV of gaps {stats['gap_cv']:.1f})",
        f"  prompts     {_tokens(stats['prompt_tokens'], stats['rows'])}{_at(plan.drawn.prompt)}",
        f"  answers     {_tokens(stats['output_tokens'], stats['rows'])}{_at(plan.drawn.output)}",
        *_under("requests", _mix(plan)),
        f"  schedule    sha256 {plan.schedule.sha256()}",
    ]
    lines += (
        ["  faults      none"] if not plan.faults else ["  faults", *(f"    {_fault(fault)}" for fault in plan.faults)]
    )
    if not plan.has_hypothesis:
        lines.append(
            "  note        no steady-state-hypothesis: nothing shows a steady start, so the verdict cannot be pass"
        )
    lines += [f"  note        {line(note)}" for note in plan.notes]
    return "\n".join(lines)


def _under(name: str, said: list[str]) -> list[str]:
    """One line each, the name before the first."""
    return [f"  {name if index == 0 else '':<12}{line(text)}" for index, text in enumerate(said)]


def _load(plan: Plan) -> list[str]:
    if plan.trace is not None:
        return [plan.trace.in_words()]
    return [plan.profile_title, *(f"{use.rows} requests of {use.in_words()}" for use in plan.profile_traces)]


def _mix(plan: Plan) -> list[str]:
    """Only what is not as usual."""
    mix = mix_stats(plan.schedule)
    if mix is None:
        return []
    said = _sessions(plan, mix) if mix.sessions else []
    if mix.with_prefix:
        top = f"; {mix.top_prefix_ratio:.0%} of requests have the most wanted one" if mix.top_prefix_ratio else ""
        said.append(f"{mix.shared_prompt_ratio:.0%} of prompt tokens repeat the beginning of an earlier one{top}")
    if mix.not_streamed:
        said.append(f"{mix.not_streamed} not streamed")
    if mix.hang_ups:
        late = plan.hang_ups_after_deadline
        but = f", {late} of them not before send.deadline_s ({plan.deadline_s:g} s), which ends them" if late else ""
        said.append(f"{mix.hang_ups} clients hang up{but}, if their answer is not whole before")
    if len(mix.tenants) > 1:
        said.append("tenants " + ", ".join(_tenant(mix, name) for name in mix.tenants))
    return said


def _sessions(plan: Plan, mix: MixStats) -> list[str]:
    turns = plan.drawn.turns
    least_most = f"{mix.turns_mean:.1f} turns on average, {mix.turns_min} at least, {mix.turns_max} at most"
    think_s = None if turns is None else turns.think_s_p50(plan.time_scale)
    thinking = "" if think_s is None else f"; thinking takes {think_s:.3g} scenario s in the median"
    return [f"{mix.sessions} sessions of {least_most}{thinking}", *([] if turns is None else _cut_short(turns))]


def _cut_short(turns: TurnsDrawn) -> list[str]:
    causes = (
        ("the next turn would be longer than context_tokens_max", turns.cut_by_context, turns.below_min_by_context),
        ("the load ends", turns.cut_by_end, turns.below_min_by_end),
    )
    said = [
        f"{count} sessions end early because {cause}"
        + (f"; {short} of them below turns_min ({turns.turns_min})" * (short > 0))
        for cause, count, short in causes
        if count
    ]
    if turns.first_turns_too_long:
        said.append(
            f"{turns.first_turns_too_long} first turns are longer than context_tokens_max, and planned all the same"
        )
    return said


def _tenant(mix: MixStats, name: str) -> str:
    priority = f" (priority {mix.priorities[name]})" if name in mix.priorities else ""
    return f"{name} {mix.tenants[name]}{priority}"


def _at(bounds: tuple[AtBound, ...]) -> str:
    """A rare draw that a bound caught is not worth a word."""
    return "".join(f"; {b.ratio:.0%} at {b.key} ({b.tokens})" for b in bounds if b.ratio >= _WORTH_SAYING)


def _promised(plan: Plan) -> str:
    return "" if plan.peak_to_mean_min is None else f", at least {plan.peak_to_mean_min:g} promised"


def _tokens(quantiles: dict[str, int], rows: int) -> str:
    mean = quantiles["sum"] / max(1, rows)
    return f"mean {mean:.0f}, median {quantiles['p50']}, p95 {quantiles['p95']}, longest {quantiles['max']} tokens"


def _fault(fault: PlannedFault) -> str:
    when = "when its turn comes" if fault.starts_s is None else f"at {fault.starts_s:g} s"
    if fault.starts_s is not None and fault.ends_s is not None and fault.ends_s > fault.starts_s:
        when = f"from {fault.starts_s:g} to {fault.ends_s:g} s"
    units = {"gpus": "GPUs"}
    counts = ((number, units.get(what, what)) for what, number in fault.blast_radius.items())
    radius = ", ".join(f"{number} {what[:-1] if number == 1 else what}" for number, what in counts)
    return f"{fault.fault_id} {when}: {', '.join(fault.targets)}{f' ({radius})' if radius else ''}"
