"""A long body sent in pieces: it is never put together whole, so it costs no large buffer and stays in the caches."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

PIECE_BYTES = 128 * 1024


class Pieces(Payload):
    """The bytes of ``parts`` one after the other."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        super().__init__(parts, content_type="application/json")
        self._parts = parts
        self._size = sum(map(len, parts))

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return b"".join(self._parts).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        begun, size = 0, 0
        for end, part in enumerate(self._parts, 1):
            size += len(part)
            if size >= PIECE_BYTES or end == len(self._parts):
                await writer.write(b"".join(self._parts[begun:end]))
                begun, size = end, 0

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        await self.write(writer)  # the length is that of all parts
