"""How a schedule says which beginnings its prompts share.

A prefix is written as segments, ``name:tokens+name:tokens``: the first tokens of one named text after another. Equal
names mean equal text, so two prompts share as much as their leading segments do, and the load makes a text from its
name alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.plan.trace_row import BLOCK_TOKENS

Segment = tuple[str, int]


def join(segments: Iterable[Segment]) -> str:
    return "+".join(f"{name}:{tokens}" for name, tokens in segments)


def split(prefix: str) -> list[Segment]:
    parts = (part.rpartition(":") for part in prefix.split("+") if part)
    return [(name, int(tokens)) for name, _, tokens in parts]


def cut_to(prefix: str, tokens: int) -> str:
    """The prefix of a prompt that was shortened to ``tokens``."""
    kept: list[Segment] = []
    for name, length in split(prefix):
        if tokens <= 0:
            break
        kept.append((name, min(length, tokens)))
        tokens -= length
    return join(kept)


class BlockNames:
    """From ids of blocks to named segments, in one pass: what a row brings anew becomes a segment named after its first
    id, and a later row that begins alike names the same segment."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[int, int]] = {}

    def prefix(self, blocks: Sequence[int], prompt_tokens: int) -> str:
        runs: list[list[int]] = []  # segment, number of its blocks
        new: int | None = None
        for block in blocks:
            place = self._places.get(block)
            if place is None:
                if new is None:
                    new = block
                    runs.append([new, 0])
                place = self._places[block] = (new, runs[-1][1])
            elif new is not None:
                break  # a known block behind an unknown one: not a shared beginning, so the rest is the row's own
            elif not runs or runs[-1][0] != place[0]:
                runs.append([place[0], 0])
            runs[-1][1] = place[1] + 1
        whole = join((f"h{segment}", count * BLOCK_TOKENS) for segment, count in runs)
        return cut_to(whole, prompt_tokens)


def drop_unshared(prefixes: Sequence[str]) -> list[str]:
    """Without last segments that only one request names: those are a request's own text."""
    uses = Counter(name for prefix in prefixes for name, _ in split(prefix))
    kept = []
    for prefix in prefixes:
        segments = split(prefix)
        while segments and uses[segments[-1][0]] == 1:
            segments.pop()
        kept.append(join(segments))
    return kept


def shared_tokens(prefixes: Sequence[str]) -> int:
    """How many prompt tokens an endless prefix cache would not compute again, with requests one after another."""
    seen: dict[tuple[str, str], int] = {}
    total = 0
    for prefix in prefixes:
        parent, shared = "", True
        for name, tokens in split(prefix):
            known = seen.get((parent, name), 0)
            if shared:
                total += min(known, tokens)
                shared = known >= tokens
            seen[parent, name] = max(known, tokens)
            parent = f"{parent}/{name}:{tokens}"
    return total
