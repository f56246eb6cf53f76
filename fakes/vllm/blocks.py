"""Blocks of KV cache, and the prefixes that are found in them.

A full block of a prompt has a hash over its own tokens and all before them. It can be found by that hash while a
request holds it, and after that until it is handed out again: free blocks are reused in the order in which they became
free, those of one request from its end (vllm 0.32 v1/core/block_pool.py).

Blocks without a hash are all alike and only counted: a thousand of them are one entry.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

NOT_NEGATIVE = (1 << 63) - 1


def block_hashes(tokens: Sequence[str] | Sequence[int], block_size: int) -> tuple[int, ...]:
    """One for each full block. Equal in one process for equal beginnings, and never to be shown."""
    found: list[int] = []
    before = 0
    for start in range(0, len(tokens) - block_size + 1, block_size):
        before = hash((before, *tokens[start : start + block_size])) & NOT_NEGATIVE
        found.append(before)
    return tuple(found)


class Held:
    """The blocks of one request: the first ``hashed`` of its hashes are shared, the rest are its own."""

    __slots__ = ("hashed", "own")

    def __init__(self) -> None:
        self.hashed: list[int] = []
        self.own = 0

    def __len__(self) -> int:
        return len(self.hashed) + self.own


class BlockPool:
    """``blocks`` can be handed out; vLLM's null block is not among them."""

    def __init__(self, blocks: int, *, caching: bool = True) -> None:
        self.free = blocks
        self.caching = caching
        self._users: dict[int, int] = {}
        self._queue: OrderedDict[int, int] = OrderedDict()
        """Free blocks, the next to be reused first: a hash with its one block, or a negative key with plain ones."""
        self._runs = 0
        self._give_back(blocks)

    def hits(self, hashes: Sequence[int], limit: int) -> int:
        """How many of the first ``limit`` blocks are there."""
        if not self.caching:
            return 0
        for i, key in enumerate(hashes[:limit]):
            if key not in self._users and key not in self._queue:
                return i
        return min(limit, len(hashes))

    def fits(self, found: Sequence[int], more: int) -> bool:
        return more + sum(key not in self._users for key in found) <= self.free

    def take(self, held: Held, found: Sequence[int], more: int) -> bool:
        """``found`` are blocks by their hashes, which are there; ``more`` are new. All, or none of them."""
        if not self.fits(found, more):
            return False
        idle = sum(key not in self._users for key in found)
        for key in found:
            if key in self._users:
                self._users[key] += 1
            else:
                del self._queue[key]
                self._users[key] = 1
            held.hashed.append(key)
        self.free -= idle + more
        held.own += more
        left = more
        while left > 0:
            key, count = self._queue.popitem(last=False)
            if key < 0 and count > left:
                self._queue[key] = count - left
                self._queue.move_to_end(key, last=False)
            left -= count
        return True

    def publish(self, held: Held, hashes: Sequence[int]) -> None:
        """Blocks that ``held`` filled can be found from now on. One whose twin is there stays as it is."""
        if not self.caching:
            return
        for key in hashes[len(held.hashed) :]:
            if held.own == 0 or key in self._users or key in self._queue:
                return
            held.hashed.append(key)
            held.own -= 1
            self._users[key] = 1

    def release(self, held: Held) -> None:
        if held.own:
            self._give_back(held.own)
            self.free += held.own
        for key in reversed(held.hashed):
            if self._users[key] > 1:
                self._users[key] -= 1
            else:
                del self._users[key]
                self._queue[key] = 1
                self.free += 1
        held.own = 0
        held.hashed.clear()

    def _give_back(self, count: int) -> None:
        self._runs += 1
        self._queue[-self._runs] = count
