"""What a gateway does wrong on purpose, by the planted bugs of its world."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from random import Random
from typing import TypeVar

from fakes.config import PlantedBug
from fakes.vllm.local_door import StreamClient

T = TypeVar("T")
PATIENCE_S = 1.2
"""Clock seconds after which a gateway that is too impatient cuts an answer."""
EVERY = 40
"""Of the tokens that pass, one in so many is dropped or repeated."""
RETRIED_SHARE = 0.1
RETRY_AFTER = 15
"""Tokens that have passed when a gateway loses its connection to the replica, and asks another."""


class GatewayMischief:
    """Nothing, unless a bug is planted; ``rng`` is drawn from only then."""

    def __init__(self, bugs: Collection[PlantedBug], rng: Random) -> None:
        self._rng = rng
        self._cuts_on_change = PlantedBug.GATEWAY_CUTS_ALL_ON_CHANGE in bugs
        self._patience_s = PATIENCE_S if PlantedBug.GATEWAY_CUTS_LONG_ANSWERS in bugs else None
        self._retries = PlantedBug.GATEWAY_RETRIES_MID_STREAM in bugs
        self.sends_twice = PlantedBug.GATEWAY_SENDS_TWICE in bugs
        drops, repeats = PlantedBug.GATEWAY_DROPS_TOKENS in bugs, PlantedBug.GATEWAY_REPEATS_TOKENS in bugs
        self.copies = 0 if drops else 2 if repeats else 1
        """How often each token in ``EVERY`` is passed on."""
        self._changed = asyncio.Event()

    def retries(self) -> bool:
        """Whether this request is one that is asked for again in the middle of its answer."""
        return self._retries and self._rng.random() < RETRIED_SHARE

    def endpoint_left(self) -> None:
        if self._cuts_on_change:
            self._changed.set()
            self._changed = asyncio.Event()

    async def carried(self, work: Awaitable[T]) -> T:
        """Raises ``ConnectionResetError`` where the gateway cuts what it carries."""
        if not self._cuts_on_change and self._patience_s is None:
            return await work
        task, change = asyncio.ensure_future(work), asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait({task, change}, timeout=self._patience_s, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ConnectionResetError("the gateway has cut what it carried")
            return task.result()
        finally:
            change.cancel()
            task.cancel()

    def client(self, client: StreamClient) -> StreamClient:
        return client if self.copies == 1 else CopyingClient(client, self.copies)


class CopyingClient:
    """Passes on every ``EVERY``-th token ``copies`` times, all others once."""

    def __init__(self, client: StreamClient, copies: int) -> None:
        self._client = client
        self._copies = copies
        self._seen = 0
        self.head = client.head
        self.body = client.body
        self.last = client.last
        self.error = client.error

    def token(self) -> None:
        self._seen += 1
        for _ in range(self._copies if self._seen % EVERY == 0 else 1):
            self._client.token()


class DoubtingClient:
    """Passes everything on until ``RETRY_AFTER`` tokens have come; then the connection is given up."""

    def __init__(self, client: StreamClient) -> None:
        self._client = client
        self._seen = 0
        self.given_up = asyncio.Event()
        self.head = client.head
        self.body = client.body
        self.last = client.last
        self.error = client.error

    def token(self) -> None:
        self._client.token()
        self._seen += 1
        if self._seen == RETRY_AFTER:
            self.given_up.set()


class Nobody:
    """A client that listens to nothing."""

    def head(self, status: int, pod: str, node: str) -> None:
        return None

    def body(self, body: bytes) -> None:
        return None

    def token(self) -> None:
        return None

    def last(self, finish: str, *, with_text: bool, usage: tuple[int, int] | None) -> None:
        return None

    def error(self, message: str, type: str, status: int) -> None:
        return None


def copying(write: Callable[[bytes], None], copies: int) -> Callable[[bytes], None]:
    """The same for bytes: only what holds nothing but text of the answer is dropped or repeated."""
    seen = 0

    def wrong(body: bytes) -> None:
        nonlocal seen
        seen += 1
        plain = b'"finish_reason":null' in body and b"[DONE]" not in body and b'"role"' not in body
        for _ in range(copies if plain and seen % EVERY == 0 else 1):
            write(body)

    return write if copies == 1 else wrong
