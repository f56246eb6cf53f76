"""What requests are like: their shared beginnings, further turns, tenants, and clients that hang up.

Each question has a stream of chance of its own, so that asking one more does not change the answers to the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.clock import NS_PER_MS, NS_PER_S
from harness.plan.chance import Chance
from harness.plan.drawn import TurnsDrawn
from harness.plan.exact import exp, ln, power, total
from harness.plan.prefixes import Segment, join
from harness.plan.tokens import Weighted, draw_tokens
from harness.spec.mix import ExponentialTime, FixedTime, HangUp, LogNormalTime, Mix, PrefixLayer, Sessions, Tenant, Time

Numbers = NDArray[np.int64]
DEFAULT_TENANT = "default"


@dataclass(slots=True)
class Requests:
    """Columns of a schedule in the making, one row per request, ``start`` being the arrival that it came with."""

    t_ns: Numbers
    prompt_tokens: Numbers
    output_tokens: Numbers
    start: Numbers
    turn: Numbers

    def only(self, chosen: NDArray[Any]) -> Requests:
        return Requests(
            self.t_ns[chosen], self.prompt_tokens[chosen], self.output_tokens[chosen], self.start[chosen],
            self.turn[chosen],
        )  # fmt: skip


# --- sessions --------------------------------------------------------------------------------------------------------


def draw_turns(sessions: Sessions | None, arrivals: int, seed: int) -> Numbers:
    """How many turns each arrival brings: 0 for one that opens no session."""
    if sessions is None:
        return np.zeros(arrivals, dtype=np.int64)
    chance = Chance(seed, "sessions")
    going_on = 1.0 - 1.0 / (sessions.turns_mean - sessions.turns_min + 1)
    turns = np.zeros(arrivals, dtype=np.int64)
    for index in range(arrivals):
        if chance.uniform() >= sessions.share:
            continue
        # The quantile function of the geometric distribution.
        more = 0 if going_on == 0 else int(ln(1.0 - chance.uniform()) / ln(going_on))
        turns[index] = min(sessions.turns_max, sessions.turns_min + more)
    return turns


def plan_turns(
    requests: Requests, sessions: Sessions, common_tokens: Numbers, time_scale: float, limit_ns: int, seed: int
) -> tuple[Requests, TurnsDrawn]:
    """Times and whole prompts of further turns, and which of them were not planned. ``requests`` holds the turns of an
    arrival one after another, each with the arrival's time and its new tokens; ``common_tokens`` is what stands before
    a session's own text."""
    chance = Chance(seed, "think")
    t_ns, prompt = requests.t_ns.tolist(), requests.prompt_tokens.tolist()
    output, start, turn = requests.output_tokens.tolist(), requests.start.tolist(), requests.turn.tolist()
    common = common_tokens.tolist()
    kept: list[int] = []
    seen = TurnsDrawn(sessions.turns_min)
    thinking_ns = 0
    for i in range(len(t_ns)):
        if turn[i] > 1:
            thinking_ns = round(draw_time_s(sessions.think_s, chance) / time_scale * NS_PER_S)
            answer_ns = round((sessions.first_token_ms + sessions.token_ms * output[i - 1]) * NS_PER_MS)
            t_ns[i] = t_ns[i - 1] + answer_ns + thinking_ns
            prompt[i] += prompt[i - 1] + output[i - 1]
        fits = common[start[i]] + prompt[i] + output[i] <= sessions.context_tokens_max
        follows = turn[i] <= 1 or (bool(kept) and kept[-1] == i - 1)
        if turn[i] <= 1 or (fits and follows and t_ns[i] < limit_ns):
            kept.append(i)
            if turn[i] > 1:
                seen.think_ns.append(thinking_ns)
            seen.first_turns_too_long += turn[i] == 1 and not fits
        elif follows:
            seen.cut_before(turn[i], by_context=not fits)
    chosen = np.array(kept, dtype=np.int64)
    planned = Requests(
        np.array(t_ns, dtype=np.int64), np.array(prompt, dtype=np.int64), requests.output_tokens, requests.start,
        requests.turn,
    ).only(chosen)  # fmt: skip
    return planned.only(np.argsort(planned.t_ns, kind="stable")), seen


def draw_time_s(time: Time, chance: Chance) -> float:
    match time:
        case FixedTime():
            return time.time_s
        case ExponentialTime():
            drawn = time.mean_s * chance.exponential()
        case LogNormalTime():
            drawn = exp(min(60.0, ln(time.median_s) + time.sigma * chance.normal()))
    return drawn if time.max_s is None else min(drawn, time.max_s)


# --- prefixes --------------------------------------------------------------------------------------------------------


def draw_prefixes(layers: tuple[PrefixLayer, ...], arrivals: int, seed: int) -> list[tuple[Segment, ...]]:
    """The segments before each arrival's own text."""
    if not layers:
        return [()] * arrivals
    drawn: list[list[Segment]] = [[] for _ in range(arrivals)]
    for number, layer in enumerate(layers):
        chance = Chance(seed, f"prefix.{number}")
        lengths = draw_tokens(layer.tokens, layer.groups, Chance(seed, f"prefix_tokens.{number}")).tolist()
        pick = Weighted([power(rank, -layer.zipf) for rank in range(1, layer.groups + 1)])
        for segments in drawn:
            if chance.uniform() < layer.share:
                group = pick(chance.uniform())
                segments.append((f"p{number}.{group}", lengths[group]))
    return [tuple(segments) for segments in drawn]


def prefix_column(
    requests: Requests, before: list[tuple[Segment, ...]], sessions: NDArray[np.str_]
) -> tuple[NDArray[np.str_], Numbers]:
    """Prefixes, and whole prompt lengths. All of a session's prompt is its own text, of which each turn has some
    more."""
    if not any(before) and not requests.turn.any():
        return np.full(len(requests.t_ns), ""), requests.prompt_tokens
    prefixes, prompts = [], requests.prompt_tokens.copy()
    for i, (start, tokens, session) in enumerate(
        zip(requests.start.tolist(), requests.prompt_tokens.tolist(), sessions.tolist(), strict=True)
    ):
        segments = before[start]
        prompts[i] = tokens + sum(length for _, length in segments)
        prefixes.append(join((*segments, (session, tokens)) if session else segments))
    return np.array(prefixes, dtype=np.str_), prompts


# --- tenants, streams, hang-ups --------------------------------------------------------------------------------------


def draw_tenants(tenants: tuple[Tenant, ...], arrivals: int, seed: int) -> tuple[NDArray[np.str_], Numbers]:
    """A tenant and its priority for each arrival; a session belongs to one tenant."""
    if not tenants:
        return np.full(arrivals, DEFAULT_TENANT), np.zeros(arrivals, dtype=np.int64)
    chance, pick = Chance(seed, "tenants"), Weighted([tenant.share for tenant in tenants])
    chosen = np.array([pick(chance.uniform()) for _ in range(arrivals)], dtype=np.int64)
    names = np.array([tenant.name for tenant in tenants], dtype=np.str_)
    priorities = np.array([tenant.priority or 0 for tenant in tenants], dtype=np.int64)
    return names[chosen], priorities[chosen]


def draw_streams(mix: Mix, requests: int, seed: int) -> Numbers:
    if mix.stream_share == 1:
        return np.ones(requests, dtype=np.int64)
    chance = Chance(seed, "stream")
    return np.array([chance.uniform() < mix.stream_share for _ in range(requests)], dtype=np.int64)


def draw_hang_ups(hang_ups: tuple[HangUp, ...], streams: Numbers, seed: int) -> tuple[Numbers, Numbers]:
    """Tokens and nanoseconds, 0 for never. The tokens of an answer in one piece cannot be counted while they come, so
    its client stays."""
    tokens, times = np.zeros(len(streams), dtype=np.int64), np.zeros(len(streams), dtype=np.int64)
    if not hang_ups:
        return tokens, times
    chance = Chance(seed, "hang_ups")
    patience = [Chance(seed, f"hang_ups.{number}") for number in range(len(hang_ups))]
    stay = max(0.0, 1.0 - total(part.share for part in hang_ups))
    pick = Weighted([*(part.share for part in hang_ups), stay])
    for i in range(len(streams)):
        number = pick(chance.uniform())
        if number == len(hang_ups):
            continue
        part = hang_ups[number]
        if part.after_tokens is not None and streams[i]:
            tokens[i] = draw_tokens(part.after_tokens, 1, patience[number])[0]
        elif part.after_s is not None:
            times[i] = max(1, round(draw_time_s(part.after_s, patience[number]) * NS_PER_S))
    return tokens, times
