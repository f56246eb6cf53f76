"""Model servers that are called within the process: no sockets, no bytes, the same requests and the same answers.

What a client would read from its connection it is told in the same order, with the network's time left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from fakes.vllm.completions import Completions
from fakes.vllm.door import Address
from fakes.vllm.requests import CompletionRequest, RequestRefused

HOST = "in-process"
CHAT_PATH = "/v1/chat/completions"


class MetricsFailed(Exception):
    """An error in place of the metrics."""


class StreamClient(Protocol):
    """The client of one chat. Called in the engine's step: nothing here may await or raise."""

    def head(self, status: int, pod: str, node: str) -> None:
        """Status and headers; ``pod`` and ``node`` are empty where no replica has answered."""
        ...

    def body(self, body: bytes) -> None:
        """The whole body of an answer that is no stream."""
        ...

    def token(self) -> None:
        """An event with text."""
        ...

    def last(self, finish: str, *, with_text: bool, usage: tuple[int, int] | None) -> None:
        """The event with the finish_reason, that of usage (tokens of prompt and answer), and ``[DONE]``."""
        ...

    def error(self, message: str, type: str, status: int) -> None:
        """An error event, and ``[DONE]``."""
        ...


class LocalDoor:
    """``switchboard`` is where it is found by its address while it is open."""

    def __init__(self, completions: Completions, switchboard: Switchboard) -> None:
        self._completions = completions
        self._switchboard = switchboard
        self._address: Address | None = None
        self._shut = False

    def bind(self, host: str, port: int) -> Address:
        self._address = self._switchboard.reserve()
        return self._address

    async def open(self) -> bool:
        if self._shut or self._address is None:
            return False
        self._switchboard.open(self._address, self)
        return True

    def shut(self) -> None:
        self._shut = True
        if self._address is not None:
            self._switchboard.close(self._address)

    def cut(self) -> None:
        for reply in list(self._completions.replies):
            reply.cut()

    def metric_sums(self) -> dict[str, float]:
        """Raises ``MetricsFailed``."""
        if self._completions.metrics_fail:
            raise MetricsFailed("status 503")
        return self._completions.metrics.sums()

    async def chat(self, body: bytes, request_id: str, client: StreamClient, head: Callable[[int], None]) -> None:
        """Returns when the answer has ended; ``head`` is told its status first. Raises ``ConnectionResetError`` when
        the server's process ends before. A client that leaves cancels the call."""
        completions, begun_s = self._completions, asyncio.get_running_loop().time()
        await completions.unless_silent()

        def observe(status: int, answered_bytes: int) -> None:
            seconds = asyncio.get_running_loop().time() - begun_s
            completions.metrics.http.observe(
                CHAT_PATH, "POST", status, asked_bytes=len(body), answered_bytes=answered_bytes, seconds=seconds
            )

        try:
            request = completions.accept(body, chat=True)
            name = completions.name(request_id, chat=True)
            if request.stream:
                head(200)
                stream = _LocalStream(request, client, force_usage=completions.flags.enable_force_include_usage)
                await completions.stream(request, name, stream)
                observe(200, 0)
                return
            status, answer = 200, await completions.whole(request, name)
        except RequestRefused as refused:
            status, answer = refused.status, refused.body()
        # Of an answer that is no stream, status and body come together, when it is whole.
        head(status)
        client.body(answer)
        observe(status, len(answer))


class Switchboard:
    """Which door is behind an address. One per world; it is the network of a world without sockets."""

    def __init__(self) -> None:
        self._reserved = 0
        self._doors: dict[Address, LocalDoor] = {}

    def door(self, completions: Completions) -> LocalDoor:
        return LocalDoor(completions, self)

    def reserve(self) -> Address:
        self._reserved += 1
        return HOST, self._reserved

    def open(self, address: Address, door: LocalDoor) -> None:
        self._doors[address] = door

    def close(self, address: Address) -> None:
        self._doors.pop(address, None)

    def connect(self, address: Address) -> LocalDoor:
        door = self._doors.get(address)
        if door is None:
            raise ConnectionRefusedError(f"nobody listens on {address[0]}:{address[1]}")
        return door


class _LocalStream:
    def __init__(self, request: CompletionRequest, client: StreamClient, *, force_usage: bool) -> None:
        self._prompt_tokens = request.prompt_tokens
        self._usage = force_usage or request.include_usage
        self._client = client

    def is_closing(self) -> bool:
        return False  # a client that leaves cancels its call, which takes it out of the engine at once

    def token(self, choice: int, index: int) -> None:
        self._client.token()

    def last(self, choice: int, index: int, finish: str, *, with_text: bool, total: int | None) -> None:
        if total is None:
            if with_text:
                self._client.token()
            return
        usage = (self._prompt_tokens, total) if self._usage else None
        self._client.last(finish, with_text=with_text, usage=usage)

    def error(self, message: str, type: str, status: int) -> None:
        self._client.error(message, type, status)
