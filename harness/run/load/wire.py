"""Raw sockets under one greenlet: an epoll of its own, each read stamped before anything looks at the bytes.

A greenlet per connection costs a switch, a timer and a watcher for every token. Here one greenlet waits for the epoll
itself, takes what is there from every readable socket, and only then has it parsed.
"""

from __future__ import annotations

import heapq
import itertools
import os
import select
import time
from collections.abc import Callable
from typing import Any, Protocol

import gevent  # type: ignore[import-untyped]  # ships no types
from gevent import monkey

from harness.clock import NS_PER_S, RunClock

READ_BYTES = 1 << 14
ROUND_S = 0.001
"""From the beginning of one round to that of the next. Under load each token would otherwise wake the process by
itself, which costs several times as much as reading it; so what comes within this time is read together, stamped late
by at most as much. The whole process rests: timers of its loop, in whole milliseconds, may be late by one more."""

_MANY = 32
"""So many reads take so long that more may have come. That is read, too, before any of it is looked at, which takes
longer still: the streams of one server all tick together, and the last one's stamp should not wait for that."""
_POLLS_MAX = 16

_LIMITS_EVERY_S, _LIMITS_UNSEEN_S = 0.01, 0.05
"""How late a limit may be noticed: one of which was known, and one that is nearer than all that were known. Limits are
tenths of seconds at least, and waking up to look for none costs as much as a hundred tokens a second."""

# Locust replaces these by gevent's own, which know nothing of descriptors waited for by somebody else.
_new_epoll: Callable[[], Any] = monkey.get_original("select", "epoll")
_rest: Callable[[float], None] = monkey.get_original("time", "sleep")
READABLE, WRITABLE = select.EPOLLIN, select.EPOLLOUT


class Peer(Protocol):
    """What stands behind a socket. None of these may yield to other greenlets."""

    def take(self, data: bytes, read_ns: int) -> None:
        """Bytes that were read at ``read_ns``; empty at the end of the connection."""

    def broken(self, error: OSError) -> None:
        """Reading failed: the connection was reset."""

    def writable(self) -> None:
        """Asked for by ``Wire.watch(..., write=True)``: connected, or room for more bytes."""


class Sleeper(Protocol):
    def limit_reached(self, now_ns: int) -> None:
        """The time asked for by ``Wire.wake_at`` has come."""


class Wire:
    """Waits for any number of sockets. ``run`` is a greenlet's whole life."""

    def __init__(self, clock: RunClock) -> None:
        self._clock = clock
        self._epoll = _new_epoll()
        self._peers: dict[int, Peer] = {}
        self._due: list[tuple[int, int, Sleeper]] = []
        self._order = itertools.count()
        self._closed = False

    def watch(self, fd: int, peer: Peer, *, write: bool = False) -> None:
        """From now on ``peer`` hears of ``fd``; asked again, it may change whether room to write is news."""
        mask = READABLE | WRITABLE if write else READABLE
        if fd in self._peers:
            self._epoll.modify(fd, mask)
        else:
            self._epoll.register(fd, mask)
        self._peers[fd] = peer

    def forget(self, fd: int) -> None:
        """Before the descriptor is closed."""
        if self._peers.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def wake_at(self, t_ns: int, sleeper: Sleeper) -> None:
        """Once. One that no longer waits for it must ignore it: there is no taking back."""
        heapq.heappush(self._due, (t_ns, next(self._order), sleeper))

    def close(self) -> None:
        self._closed = True
        self._peers.clear()
        self._due.clear()
        self._epoll.close()

    def run(self) -> None:
        """Reads until killed, and lets others run after each round."""
        hub = gevent.get_hub()
        news = hub.loop.io(self._epoll.fileno(), 1)
        limits = gevent.spawn(self._watch_limits)
        try:
            while not self._closed:
                hub.wait(news)
                began_ns = time.monotonic_ns()
                self.read_what_is_there()
                rest_s = ROUND_S - (time.monotonic_ns() - began_ns) / NS_PER_S
                if rest_s > 0:
                    _rest(rest_s)
        finally:
            limits.kill(block=False)
            news.close()

    def read_what_is_there(self) -> None:
        """One round: first everything is read and stamped, then it is handed out."""
        start_ns, monotonic_ns, read = self._clock.start_ns, time.monotonic_ns, os.read
        peers = self._peers
        taken: list[tuple[Peer, bytes | OSError, int]] = []
        ended = False
        for _ in range(_POLLS_MAX):
            ready = self._epoll.poll(0)
            for fd, mask in ready:
                peer = peers.get(fd)
                if peer is None:
                    continue
                if mask & WRITABLE:
                    peer.writable()
                    if fd not in peers or not mask & ~WRITABLE:
                        continue
                try:
                    data: bytes | OSError = read(fd, READ_BYTES)
                except BlockingIOError:
                    continue
                except OSError as error:
                    data, ended = error, True
                taken.append((peer, data, monotonic_ns() - start_ns))
                ended = ended or not data
            if ended or len(ready) < _MANY:
                break  # an end would be told again until its peer has heard of it
        for peer, data, read_ns in taken:
            if isinstance(data, bytes):
                peer.take(data, read_ns)
            else:
                peer.broken(data)

    def _watch_limits(self) -> None:
        while not self._closed:
            wait_s = (self._due[0][0] - self._clock.now_ns()) / NS_PER_S if self._due else _LIMITS_UNSEEN_S
            gevent.sleep(min(max(wait_s, _LIMITS_EVERY_S), _LIMITS_UNSEEN_S))
            now_ns = self._clock.now_ns()
            if self._due and self._due[0][0] <= now_ns:
                # The machine, not the server, may have stood still: then the bytes are there, and count.
                self.read_what_is_there()
                while self._due and self._due[0][0] <= now_ns:
                    heapq.heappop(self._due)[2].limit_reached(self._clock.now_ns())
