"""A plan in words, for a terminal or a log: plain text, no colours."""

from __future__ import annotations

from typing import Any

from harness.plan.make import TraceUse
from harness.plan.mixed import mix_stats
from harness.plan.plan import Plan, PlannedFault
from harness.printable import line


def describe(plan: Plan) -> str:
    stats: dict[str, Any] = dict(plan.stats)
    lines = [
        line(plan.title),
        f"  seed        {plan.seed}",
        f"  time        {plan.duration_s:g} scenario s in {plan.clock_s:g} clock s (time_scale {plan.time_scale:g})",
        f"  load        {_load(plan)}",
        f"  arrivals    {stats['rows']} requests, {stats['mean_per_s']:g}/s on average, {stats['peak_per_s']}/s at the"
        f" peak (peak-to-mean {stats['peak_to_mean']:.1f}{_promised(plan)}; CV of gaps {stats['gap_cv']:.1f})",
        f"  prompts     {_tokens(stats['prompt_tokens'], stats['rows'])}",
        f"  answers     {_tokens(stats['output_tokens'], stats['rows'])}",
        *_mix(plan),
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


def _load(plan: Plan) -> str:
    if plan.trace is not None:
        return _cut(plan.trace)
    if not plan.profile_traces:
        return plan.profile_title
    return "; ".join([plan.profile_title, *(f"{use.rows} requests of {_cut(use)}" for use in plan.profile_traces)])


def _cut(trace: TraceUse) -> str:
    end_s = trace.start_s + trace.duration_s
    text = f"{trace.file}, trace seconds {trace.start_s:g} to {end_s:g} at speed {trace.speed:g}"
    if trace.scale != 1:
        text += f", {trace.scale:g} times its rate"
    if trace.loop:
        text += ", in a loop"
    if trace.failed_rows:
        text += f"; {trace.failed_rows} failed rows left out"
    return f"{text}; {trace.shortened_rows} rows shortened" if trace.shortened_rows else text


def _mix(plan: Plan) -> list[str]:
    """Only what is not as usual."""
    mix = mix_stats(plan.schedule)
    if mix is None:
        return []
    said = []
    if mix.sessions:
        said.append(f"{mix.sessions} sessions of {mix.turns_mean:.1f} turns on average, {mix.turns_max} at most")
    if mix.with_prefix:
        said.append(f"{mix.shared_prompt_ratio:.0%} of prompt tokens repeat the beginning of an earlier one")
    if mix.not_streamed:
        said.append(f"{mix.not_streamed} not streamed")
    if mix.hang_ups:
        said.append(f"{mix.hang_ups} clients hang up")
    if len(mix.tenants) > 1:
        said.append("tenants " + ", ".join(f"{name} {count}" for name, count in mix.tenants.items()))
    return [f"  requests    {'; '.join(said)}"] if said else []


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
