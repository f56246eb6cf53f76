"""A server that is no bottleneck: raw sockets, one greeting, one server-sent event and one ``send`` per token.

``python benchmarks/sse_source.py --pace 50 --ttl-s 120`` prints its port and serves every POST with as many tokens as
its ``max_tokens`` says, ``--pace`` a second. At its end it writes to ``--sent FILE`` when each request's first token
went out, so that a client's bias can be told: one line ``<x-request-id> <CLOCK_MONOTONIC ns>`` each; the last line is
``tokens <of whole answers>``.
"""

from __future__ import annotations

import argparse
import heapq
import re
import select
import signal
import socket
import sys
import time
from pathlib import Path

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_ID = re.compile(rb"x-request-id: (\S+)", re.IGNORECASE)
_TOKENS = re.compile(rb'"max_(?:completion_)?tokens": ?(\d+)')
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
)  # fmt: skip
_MODELS = b'{"object":"list","data":[{"id":"m","object":"model"}]}'
_THERE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(_MODELS), _MODELS)


def event(data: bytes) -> bytes:
    body = b"data: " + data + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(body), body)


def token(finish: bytes = b"null") -> bytes:
    """A chat completion chunk as a vLLM 0.32 sends it, 213 bytes."""
    return event(
        b'{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1764460000,"model":"llama-8b",'
        b'"choices":[{"index":0,"delta":{"content":"word "},"logprobs":null,"finish_reason":%s,"token_ids":null}]}'
        % finish
    )


def last(tokens: int) -> bytes:
    usage = (
        b'{"object":"chat.completion.chunk","choices":[],'
        b'"usage":{"prompt_tokens":7,"completion_tokens":%d,"total_tokens":%d}}'
    )
    return event(usage % (tokens, tokens + 7)) + event(b"[DONE]") + b"0\r\n\r\n"


TOKEN, LAST_TOKEN = token(), token(b'"length"')
ROLE = event(
    b'{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},'
    b'"finish_reason":null}]}'
)


class Source:
    def __init__(self, pace_per_s: float) -> None:
        self._gap_s = 1 / pace_per_s
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        self._epoll = select.epoll()
        self._epoll.register(self._listener.fileno(), select.EPOLLIN)
        self._peers: dict[int, tuple[socket.socket, bytearray]] = {}
        self._due: list[tuple[float, int, socket.socket, int, int]] = []
        self._count = 0
        self._ids: dict[int, str] = {}
        self.first_token_ns: dict[str, int] = {}
        self.tokens = 0

    def serve(self, until_s: float) -> None:
        while (now := time.monotonic()) < until_s:
            while self._due and self._due[0][0] <= now:
                self._send_token(*heapq.heappop(self._due))
            wait_s = min(0.2, max(0.0, self._due[0][0] - time.monotonic())) if self._due else 0.2
            for fd, _ in self._epoll.poll(wait_s):
                if fd == self._listener.fileno():
                    self._accept()
                else:
                    self._read(fd)

    def _send_token(self, due_s: float, _: int, peer: socket.socket, left: int, tokens: int) -> None:
        if left == tokens and (name := self._ids.get(peer.fileno())) is not None:
            self.first_token_ns[name] = time.monotonic_ns()
        try:
            if left > 1:
                peer.send(TOKEN)
                self._later(due_s + self._gap_s, peer, left - 1, tokens)
            else:
                peer.send(LAST_TOKEN)
                peer.send(last(tokens))
                self.tokens += tokens
        except OSError:
            return  # it has gone; its descriptor says so as well

    def _later(self, due_s: float, peer: socket.socket, left: int, tokens: int) -> None:
        self._count += 1
        heapq.heappush(self._due, (due_s, self._count, peer, left, tokens))

    def _accept(self) -> None:
        try:
            peer, _ = self._listener.accept()
        except BlockingIOError:
            return
        peer.setblocking(False)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peers[peer.fileno()] = (peer, bytearray())
        self._epoll.register(peer.fileno(), select.EPOLLIN)

    def _read(self, fd: int) -> None:
        peer, got = self._peers[fd]
        try:
            data = peer.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._epoll.unregister(fd)
            del self._peers[fd]
            peer.close()
            return
        got += data
        head, found, body = bytes(got).partition(b"\r\n\r\n")
        if found and head.startswith(b"GET"):  # some clients look first whether there is a server
            got.clear()
            peer.send(_THERE)
            return
        length = _LENGTH.search(head)
        if not found or length is None or len(body) < int(length[1]):
            return
        got.clear()
        if (name := _ID.search(head)) is not None:
            self._ids[fd] = name[1].decode()
        wanted = _TOKENS.search(body)
        tokens = int(wanted[1]) if wanted else 1
        peer.send(_HEAD + ROLE)
        self._later(time.monotonic(), peer, tokens, tokens)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pace", type=float, default=50, help="tokens per second of each stream")
    parser.add_argument("--ttl-s", type=float, default=120, help="how long to serve")
    parser.add_argument("--sent", type=Path, help="written at SIGTERM or the end")
    args = parser.parse_args()
    source = Source(args.pace)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    print(source.port, flush=True)
    try:
        source.serve(time.monotonic() + args.ttl_s)
    finally:
        if args.sent is not None:
            lines = [f"{name} {t_ns}\n" for name, t_ns in source.first_token_ns.items()]
            args.sent.write_text("".join([*lines, f"tokens {source.tokens}\n"]))


if __name__ == "__main__":
    main()
