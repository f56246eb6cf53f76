"""Which replica has seen the beginning of a request before: what it computed then, it finds in its prefix cache.

As the prefix plugin of the Gateway API's inference extension keeps it: the request's bytes in blocks of 64, each hashed
with all before it, at most 256 of them, and for each replica the last 31,250 that it was sent. It is a guess: nobody
asks the replicas what they still have.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

BLOCK_BYTES = 64
BLOCKS_MAX = 256
KEPT_BLOCKS = 31_250


def prefix_hashes(body: bytes) -> tuple[int, ...]:
    """Equal in one process for equal beginnings."""
    found: list[int] = []
    before = 0
    for start in range(0, min(len(body) - BLOCK_BYTES + 1, BLOCKS_MAX * BLOCK_BYTES), BLOCK_BYTES):
        before = hash((before, body[start : start + BLOCK_BYTES]))
        found.append(before)
    return tuple(found)


class PrefixIndex:
    """By the replica's pod."""

    def __init__(self) -> None:
        self._seen: dict[str, OrderedDict[int, None]] = {}

    def matched(self, pod: str, hashes: Sequence[int]) -> int:
        """How many blocks of the beginning the replica has been sent."""
        seen = self._seen.get(pod)
        if seen is None:
            return 0
        for i, key in enumerate(hashes):
            if key not in seen:
                return i
        return len(hashes)

    def note(self, pod: str, hashes: Sequence[int]) -> None:
        seen = self._seen.setdefault(pod, OrderedDict())
        for key in hashes:
            seen[key] = None
            seen.move_to_end(key)
        while len(seen) > KEPT_BLOCKS:
            seen.popitem(last=False)

    def forget(self, pod: str) -> None:
        self._seen.pop(pod, None)
