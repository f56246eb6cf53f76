"""From a load profile and a seed to a schedule: who comes when, asks for how much, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.clock import NS_PER_S
from harness.errors import BadInput
from harness.plan import mix as mixing
from harness.plan.arrivals import Span, arrive, planned_rises_ns, seen_in_arrivals
from harness.plan.chance import Chance
from harness.plan.drawn import Drawn, TurnsDrawn, at_bounds
from harness.plan.mix import Requests
from harness.plan.prefixes import Segment, cut_to, drop_unshared, join
from harness.plan.replay import Numbers, Traces, replay, text_at, use_of
from harness.plan.schedule import More, Schedule, rises_ns
from harness.plan.tokens import draw_tokens
from harness.plan.trace import CutError, TraceCut, read_cut
from harness.plan.trace_row import ROWS_MAX, too_many
from harness.plan.traceuse import TraceUse
from harness.spec.arrivals import TraceArrivals, placed
from harness.spec.loadprofile import LoadProfile
from harness.spec.tokens import Tokens, TraceTokens

LONGEST_CLOCK_S = 86_400
"""A longer run is a slip in a number, and its arrivals would not fit into memory."""


@dataclass(frozen=True, slots=True)
class Made:
    """A schedule, which rows of which traces arrive in it, and what its columns do not show."""

    schedule: Schedule
    traces: tuple[TraceUse, ...]
    drawn: Drawn


def schedule_of_profile(profile: LoadProfile, time_scale: float, seed: int) -> Schedule:
    return make_schedule(profile, time_scale, seed).schedule


def make_schedule(profile: LoadProfile, time_scale: float, seed: int) -> Made:
    traces = Traces(profile.document.path)
    span = Span(profile.duration_s, time_scale, seed)
    try:
        arrived = arrive(profile.arrivals, span, traces)
    except CutError as error:
        raise _on_its_line(profile, error) from None
    if not len(arrived.t_ns):
        raise profile.document.mistake(
            ("arrivals",), f"no request arrives with seed {seed}", "raise the rate or duration_s"
        )
    if seen_in_arrivals(profile.arrivals):
        steps_ns = rises_ns(arrived.t_ns, span.clock_s)
    else:
        steps_ns = planned_rises_ns(profile.arrivals, span, Traces(profile.document.path))
    mix, arrivals = profile.mix, len(arrived.t_ns)
    turns = mixing.draw_turns(mix.sessions, arrivals, seed)
    if int(np.maximum(turns, 1).sum()) > ROWS_MAX:
        raise too_many("the load profile with its sessions", ROWS_MAX)
    start = np.repeat(np.arange(arrivals, dtype=np.int64), np.maximum(turns, 1))
    first = np.concatenate([_ZERO, np.cumsum(np.maximum(turns, 1))[:-1]])
    turn = np.where(turns[start] > 0, np.arange(len(start)) - first[start] + 1, 0)
    row = arrived.row[start]
    prompt, output = _lengths(profile, traces, row, seed)
    requests = Requests(arrived.t_ns[start], prompt, output, start, turn)
    before = mixing.draw_prefixes(mix.prefixes, arrivals, seed)
    turns_drawn: TurnsDrawn | None = None
    if mix.sessions is not None:
        common = np.array([sum(tokens for _, tokens in segments) for segments in before], dtype=np.int64)
        requests, turns_drawn = mixing.plan_turns(requests, mix.sessions, common, time_scale, span.clock_ns, seed)
    session = np.array(
        [f"s{i}" if n else "" for i, n in zip(requests.start.tolist(), requests.turn.tolist(), strict=True)]
    )
    prefix, prompts = mixing.prefix_column(requests, before, session)
    tenants, priorities = mixing.draw_tenants(mix.tenants, arrivals, seed)
    tenant, priority = tenants[requests.start], priorities[requests.start]
    if _takes_rows(profile):
        prefix, session = _of_rows(traces, row, before, prompt)
        requests.turn = _turns(session.tolist())
        tenant = np.array([traces.tenant[i] or name for i, name in zip(row.tolist(), tenant.tolist(), strict=True)])
    streams = mixing.draw_streams(mix, len(prompts), seed)
    hang_ups = mixing.draw_hang_ups(mix.hang_ups, streams, seed)
    more = More(requests.turn, priority, streams, *hang_ups, prefix).or_none()
    schedule = Schedule(requests.t_ns, prompts, requests.output_tokens, tenant, session, steps_ns, more)
    own: Numbers | slice = (
        first[requests.start] + np.maximum(requests.turn, 1) - 1 if mix.sessions is not None else slice(None)
    )
    drawn = Drawn(
        at_bounds(profile.tokens.prompt, prompt[own]), at_bounds(profile.tokens.output, output[own]), turns_drawn
    )
    return Made(schedule, tuple(traces.used), drawn)


def _on_its_line(profile: LoadProfile, error: CutError) -> BadInput:
    """Cuts that are alike are wrong alike, so the first one of them is as good as any."""
    cut = error.cut
    for key, kind in placed(profile.arrivals, ("arrivals",)):
        if not isinstance(kind, TraceArrivals):
            continue
        if (Path(kind.file).name, kind.start_s, kind.duration_s) == (cut.file.name, cut.start_s, cut.duration_s):
            return profile.document.mistake((*key, error.key), f"{cut.file.name}: {error.message}", error.hint)
    return error


_ZERO = np.zeros(1, dtype=np.int64)


def schedule_of_trace(profile: LoadProfile, cut: TraceCut, time_scale: float, seed: int) -> tuple[Schedule, TraceUse]:
    """Arrivals and lengths from the file; the profile gives the client's patience and the limits for lengths."""
    rows = read_cut(cut, Chance(seed, "trace"))
    if rows.seconds / cut.speed > LONGEST_CLOCK_S:
        raise BadInput(
            f"--speed is {cut.speed:g}, so {rows.seconds:g} s of the trace take {rows.seconds / cut.speed:g} s on the"
            " clock",
            hint=f"a run takes at most {LONGEST_CLOCK_S} s, one day; shorten --trace-duration, or raise --speed",
        )
    lasts_ns = round(profile.duration_s / time_scale * NS_PER_S)
    came = replay(rows, cut, lasts_ns)
    if cut.loop:
        within = came.t_ns < lasts_ns
        t_ns, row, loop = came.t_ns[within], came.row[within], came.loop[within]
        lasts_s = lasts_ns / NS_PER_S
    else:
        t_ns, row, loop, lasts_s = came.t_ns, came.row, came.loop, rows.seconds / cut.speed
    if not len(t_ns):
        raise profile.document.mistake(("duration_s",), "ends before the trace's first request", "raise it")
    prompt = np.array(rows.prompt_tokens, dtype=np.int64)[row]
    output = np.array(rows.output_tokens, dtype=np.int64)[row]
    limits = profile.spec.trace
    short_prompt = prompt if limits.prompt_tokens_max is None else np.minimum(prompt, limits.prompt_tokens_max)
    short_output = output if limits.output_tokens_max is None else np.minimum(output, limits.output_tokens_max)
    shortened = int(((short_prompt != prompt) | (short_output != output)).sum())
    sessions = [
        f"{name}{f'.l{n}' if n else ''}" if (name := text_at(rows.session, i)) else ""
        for i, n in zip(row.tolist(), loop.tolist(), strict=True)
    ]
    prefixes = [cut_to(text_at(rows.prefix, i), n) for i, n in zip(row.tolist(), short_prompt.tolist(), strict=True)]
    tenant, priority = mixing.draw_tenants(profile.mix.tenants, len(t_ns), seed)
    tenant = np.array([text_at(rows.tenant, i) or name for i, name in zip(row.tolist(), tenant.tolist(), strict=True)])
    streams = mixing.draw_streams(profile.mix, len(t_ns), seed)
    hang_ups = mixing.draw_hang_ups(profile.mix.hang_ups, streams, seed)
    prefix = np.array(drop_unshared(prefixes), dtype=np.str_)
    more = More(_turns(sessions), priority, streams, *hang_ups, prefix)
    schedule = Schedule(
        t_ns, short_prompt, short_output, tenant, np.array(sessions, dtype=np.str_),
        rises_ns(t_ns, lasts_s), more.or_none(),
    )  # fmt: skip
    return schedule, use_of(cut, rows, len(t_ns), lasts_s, shortened)


# --- lengths ---------------------------------------------------------------------------------------------------------


def _lengths(profile: LoadProfile, traces: Traces, row: Numbers, seed: int) -> tuple[Numbers, Numbers]:
    prompt, output = profile.tokens.prompt, profile.tokens.output
    same_file = isinstance(prompt, TraceTokens) and isinstance(output, TraceTokens) and prompt.file == output.file
    return (
        _draw(prompt, "prompt_tokens", "lengths" if same_file else "prompt_tokens", traces, row, seed),
        _draw(output, "output_tokens", "lengths" if same_file else "output_tokens", traces, row, seed),
    )


def _draw(tokens: Tokens, column: str, stream: str, traces: Traces, row: Numbers, seed: int) -> Numbers:
    if not isinstance(tokens, TraceTokens):
        return draw_tokens(tokens, len(row), Chance(seed, stream))
    if tokens.file is None:
        drawn = np.array(getattr(traces, column), dtype=np.int64)[row]
    else:
        lengths = np.array(getattr(traces.lengths(tokens.file), column), dtype=np.int64)
        chance = Chance(seed, stream)
        drawn = lengths[[int(chance.uniform() * len(lengths)) for _ in range(len(row))]]
    return drawn if tokens.max_tokens is None else np.minimum(drawn, tokens.max_tokens)


def _takes_rows(profile: LoadProfile) -> bool:
    prompt = profile.tokens.prompt
    return isinstance(prompt, TraceTokens) and prompt.file is None


def _of_rows(
    traces: Traces, row: Numbers, before: list[tuple[Segment, ...]], own_tokens: Numbers
) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    """Prefix and session as the file has them; what the profile puts before every prompt stays before the file's."""
    prefixes = []
    for index, segments, tokens in zip(row.tolist(), before, own_tokens.tolist(), strict=True):
        parts = (join(segments), cut_to(traces.prefix[index], tokens))
        prefixes.append("+".join(part for part in parts if part))
    sessions = [traces.session[index] for index in row.tolist()]
    return np.array(drop_unshared(prefixes), dtype=np.str_), np.array(sessions, dtype=np.str_)


def _turns(sessions: list[str]) -> Numbers:
    counts: dict[str, int] = {}
    turns = np.zeros(len(sessions), dtype=np.int64)
    for index, session in enumerate(sessions):
        if session:
            turns[index] = counts[session] = counts.get(session, 0) + 1
    return turns
