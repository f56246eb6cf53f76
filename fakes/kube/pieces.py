"""A long body sent in pieces: it is never put together whole, so it costs no large buffer and stays in the caches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

PIECE_BYTES = 128 * 1024


class Pieces(Payload):
    """``head``, then ``items`` with a comma between two, then ``tail``."""

    def __init__(self, head: bytes, items: Sequence[bytes], tail: bytes) -> None:
        super().__init__(items, content_type="application/json")
        self._head, self._items, self._tail = head, items, tail
        self._count = len(head) + sum(map(len, items)) + max(0, len(items) - 1) + len(tail)
        self._size = self._count

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return b"".join(self._pieces()).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for piece in self._pieces():
            await writer.write(piece)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        await self.write(writer)  # the length is that of all parts

    def _pieces(self) -> Iterator[bytes]:
        """Of about the same size, as far as the items are."""
        items = self._items
        count = max(1, PIECE_BYTES * len(items) // self._count)
        opening = self._head
        for begin in range(0, len(items), count):
            closing = self._tail if begin + count >= len(items) else b""
            yield opening + b",".join(items[begin : begin + count]) + closing
            opening = b","
