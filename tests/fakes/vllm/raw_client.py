"""A client that sees bytes: how an answer began, what came, and how it ended."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

DEADLINE_S = 20.0


def chat_body(tokens: int, **more: object) -> bytes:
    message = {"role": "user", "content": "hello there"}
    body = {"model": "m", "messages": [message], "max_tokens": tokens, "ignore_eos": True, "stream": True, **more}
    return json.dumps(body).encode()


@dataclass
class Answer:
    """``whole`` says whether the framing ended as it should: the last chunk, or as many bytes as were promised."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    whole: bool = False
    reset: bool = False

    @property
    def events(self) -> list[str]:
        return [e.removeprefix("data: ") for e in self.body.decode().split("\n\n") if e]

    @property
    def text_events(self) -> list[str]:
        """Events with a token's text."""
        return [e for e in self.events if '"content":' in e and '"role"' not in e]


class Exchange:
    """One request on a connection of its own; read on at will."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.answer = Answer()

    async def head(self) -> Answer:
        async with asyncio.timeout(DEADLINE_S):
            lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.answer.status = int(lines[0].split()[1])
        pairs = (line.partition(": ") for line in lines[1:] if line)
        self.answer.headers = {name.lower(): value for name, _, value in pairs}
        return self.answer

    async def chunk(self) -> bytes:
        """The next chunk of a chunked body; empty at its end."""
        async with asyncio.timeout(DEADLINE_S):
            size = int(await self._reader.readuntil(b"\r\n"), 16)
            data = (await self._reader.readexactly(size + 2))[:-2]
        self.answer.body += data
        self.answer.whole = size == 0
        return data

    async def rest(self) -> Answer:
        try:
            if "content-length" in self.answer.headers:
                async with asyncio.timeout(DEADLINE_S):
                    self.answer.body = await self._reader.readexactly(int(self.answer.headers["content-length"]))
                self.answer.whole = True
            else:
                while await self.chunk():
                    pass
        except asyncio.IncompleteReadError:
            self.answer.whole = False
        except ConnectionResetError:
            self.answer.whole = False
            self.answer.reset = True
        finally:
            self.close()
        return self.answer

    def close(self) -> None:
        self._writer.close()


async def begin(address: tuple[str, int], request: bytes) -> Exchange:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request)
    return Exchange(reader, writer)


def post_request(body: bytes, path: str = "/v1/chat/completions", headers: str = "") -> bytes:
    lines = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return (lines + headers + "\r\n").encode() + body


async def post(
    address: tuple[str, int], body: bytes, path: str = "/v1/chat/completions", headers: str = ""
) -> Exchange:
    return await begin(address, post_request(body, path, headers))


async def post_bytes(address: tuple[str, int], body: bytes) -> bytes:
    return await read_whole(address, post_request(body))


async def get_bytes(address: tuple[str, int], path: str) -> bytes:
    return await read_whole(address, f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())


async def get(address: tuple[str, int], path: str) -> Answer:
    exchange = await begin(address, f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    await exchange.head()
    return await exchange.rest()


async def read_whole(address: tuple[str, int], request: bytes) -> bytes:
    """All bytes of one answer, as they came."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request)
    try:
        async with asyncio.timeout(DEADLINE_S):
            raw = head = await reader.readuntil(b"\r\n\r\n")
            if b"transfer-encoding: chunked" in head.lower():
                while not raw.endswith(b"\r\n0\r\n\r\n"):
                    raw += await reader.readuntil(b"\r\n")
            else:
                lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                raw += await reader.readexactly(int(lengths[0].split(b":")[1]) if lengths else 0)
    finally:
        writer.close()
    return raw
