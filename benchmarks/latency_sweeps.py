"""How near each latency profile comes to what others have measured of a real server.

``python benchmarks/latency_sweeps.py`` drives the engine alone, in virtual time, as each published sweep drove its
server (so many clients, each asking again when it has its answer), and prints the table of docs/fidelity.md.
Lengths of answers vary by up to half, or all clients would go in step for ever. The first answers, two for each client,
count for nothing, since all of them begin at once, which no published figure means; the last ones end under full load.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from dataclasses import dataclass, field, replace
from random import Random

from fakes.vllm.engine import Engine, EngineLimits, EngineRequest
from fakes.vllm.metrics import EngineMetrics
from fakes.vllm.presets import PROFILES
from harness.run.virtual.loop import VirtualLoop

COUNTED, WARM_UP = 6, 2
"""Answers for each client on average, and how many before them."""


@dataclass(frozen=True, slots=True)
class Point:
    clients: int
    itl_ms: float | None
    tokens_per_s: float | None
    ttft_ms: float | None


@dataclass(frozen=True, slots=True)
class Sweep:
    profile: str
    source: str
    prompt_tokens: int
    output_tokens: int
    points: tuple[Point, ...]
    fitted: str


SWEEPS: tuple[Sweep, ...] = (
    Sweep(
        "llama-70b-fp8-h100-tp2", "NIM, 70B FP8, TP2 (zivbeker42/llm-guesstimator)", 5000, 500,
        (
            Point(1, 18.6, 52, 407), Point(5, 21.8, 218, 547), Point(25, 38.8, 623, 689), Point(50, 59.7, 814, 835),
            Point(100, 92.9, 917, 7996),
        ),
        "fitted to this sweep: only its shape and its knee are evidence",
    ),
    Sweep(
        "llama-8b-a100-40", "vLLM 0.23, 8B, A100-40 (johnmusgrave)", 1024, 128,
        (Point(1, None, 75, None), Point(8, None, 495, None)),
        "floor fitted to the first row",
    ),
    Sweep(
        "llama-8b-h100", "vLLM 0.21, 8B FP16, H100 (yobitel InferenceBench); lengths not published, 256 in and out "
        "assumed", 256, 256,
        (Point(1, 6.5, 122, 14), Point(4, 6.6, 580, 23), Point(16, 10.9, 1384, 42), Point(64, 46.9, 1312, 87)),
        "floor fitted to the first row",
    ),
)  # fmt: skip
SWEEPS += (replace(SWEEPS[-1], profile="llama-8b-h100-slow-host", fitted="floor and host fitted to this sweep"),)


@dataclass(frozen=True, slots=True)
class Steps:
    """Milliseconds of single steps: prompts of 512, 1024, 2048 and 4096 tokens, then decodes of 1, 8, 16, 32, 64."""

    profile: str
    prompts_ms: tuple[float, ...]
    decodes_ms: tuple[float, ...]


PROMPTS, DECODES, CONTEXT_TOKENS = (512, 1024, 2048, 4096), (1, 8, 16, 32, 64), 1000
SPLITWISE = (
    Steps("llama-70b-h100-tp8", (54, 78, 137, 390), (30.6, 32.5, 34.2, 38.6, 50.2)),
    Steps("llama-70b-h100-tp4", (60, 106, 201, 464), (29.4, 31.4, 32.8, 36.9, 52.4)),
    Steps("llama-70b-a100-tp8", (93, 155, 274, 661), (45, 46.5, 50.4, 53, 71.6)),
    Steps("llama-70b-a100-tp4", (127, 227, 403, 965), (44.5, 45.8, 48.5, 52.3, 72.9)),
)
"""Splitwise, Llama 2 70B on the vLLM of 2023 (the CSV file of Mutinifni/splitwise-sim)."""


@dataclass
class Notes:
    """When each token of one answer came."""

    done: asyncio.Future[None]
    times: list[float] = field(default_factory=list)

    def token(self, index: int, finish: str | None) -> None:
        self.times.append(asyncio.get_running_loop().time())
        if finish is not None:
            self.done.set_result(None)


Answers = list[tuple[float, Notes]]


async def client(engine: Engine, sweep: Sweep, rng: Random, answers: Answers) -> None:
    """Never ends by itself."""
    loop = asyncio.get_running_loop()
    while True:
        sent_s, notes = loop.time(), Notes(loop.create_future())
        tokens = round(sweep.output_tokens * rng.uniform(0.5, 1.5))
        engine.submit(EngineRequest("r", sweep.prompt_tokens, tokens, "length", tokens, sink=notes))
        await notes.done
        answers.append((sent_s, notes))


async def simulated(sweep: Sweep, clients: int) -> tuple[Point, int]:
    """What the profile makes of it, and how many requests were preempted."""
    profile = PROFILES[sweep.profile]
    limits = EngineLimits(profile.max_num_seqs, profile.max_num_batched_tokens, profile.kv_blocks)
    metrics = EngineMetrics("m", max_model_len=32_768, cache_config={}, created_s=0.0)
    engine = Engine(profile, limits, metrics)
    answers: Answers = []
    asking = [asyncio.create_task(client(engine, sweep, Random(f"{clients}/{i}"), answers)) for i in range(clients)]
    while len(answers) < clients * (WARM_UP + COUNTED):
        await asyncio.sleep(0.01)
    for task in asking:
        task.cancel()
    counted = answers[clients * WARM_UP :]
    ttft_s = [notes.times[0] - sent_s for sent_s, notes in counted]
    itl_s = [(n.times[-1] - n.times[0]) / (len(n.times) - 1) for _, n in counted]
    whole_s = sum(notes.times[-1] - sent_s for sent_s, notes in counted)
    per_s = clients * sum(len(notes.times) for _, notes in counted) / whole_s
    point = Point(clients, statistics.mean(itl_s) * 1e3, per_s, statistics.mean(ttft_s) * 1e3)
    return point, int(metrics.preemptions.value)


def run(sweep: Sweep, clients: int) -> tuple[Point, int]:
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(simulated(sweep, clients))
    finally:
        loop.close()


def pair(ours: float | None, theirs: float | None) -> str:
    if theirs is None or ours is None:
        return "-"
    return f"{ours:.3g} / {theirs:g} ({ours / theirs - 1:+.0%})"


def print_steps() -> None:
    print("\n| profile | " + " | ".join([f"prompt {n}" for n in PROMPTS] + [f"{n} decodes" for n in DECODES]) + " |")
    print("|---" * (1 + len(PROMPTS) + len(DECODES)) + "|")
    for steps in SPLITWISE:
        profile = PROFILES[steps.profile]
        # A prompt longer than the budget takes several steps, as the engine cuts it.
        budget = profile.max_num_batched_tokens
        prompts = [sum(profile.step_s(min(budget, n - at), at, 1) for at in range(0, n, budget)) * 1e3 for n in PROMPTS]
        decodes = [profile.step_s(n, n * CONTEXT_TOKENS, n) * 1e3 for n in DECODES]
        cells = [pair(ours, theirs) for ours, theirs in zip(prompts, steps.prompts_ms, strict=True)]
        cells += [pair(ours, theirs) for ours, theirs in zip(decodes, steps.decodes_ms, strict=True)]
        print(f"| `{steps.profile}` | {' | '.join(cells)} |")


def main() -> int:
    print("| profile | clients | ms between tokens | tokens/s | ms to first token | preempted |")
    print("|---|---|---|---|---|---|")
    for sweep in SWEEPS:
        for theirs in sweep.points:
            ours, preempted = run(sweep, theirs.clients)
            cells = (
                pair(ours.itl_ms, theirs.itl_ms), pair(ours.tokens_per_s, theirs.tokens_per_s),
                pair(ours.ttft_ms, theirs.ttft_ms),
            )  # fmt: skip
            print(f"| `{sweep.profile}` | {theirs.clients} | {' | '.join(cells)} | {preempted} |")
    print_steps()
    for sweep in SWEEPS:
        size = f"{sweep.prompt_tokens} tokens in, {sweep.output_tokens} out"
        print(f"\n- `{sweep.profile}`: {sweep.source}; {size}; {sweep.fitted}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
