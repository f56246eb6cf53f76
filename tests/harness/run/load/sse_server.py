"""A chat server made of raw sockets that answers by script: the model name says how the stream goes wrong."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

Script = Callable[["Conversation"], None]


def event(body: object) -> bytes:
    return b"data: " + (body if isinstance(body, bytes) else json.dumps(body).encode()) + b"\n\n"


def token(text: str = "word ", finish: str | None = None) -> bytes:
    return event(
        {
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}],
        }
    )


ROLE = event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})
DONE = event(b"[DONE]")
ERROR = event({"error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "code": 500}})


def usage(tokens: int) -> bytes:
    return event(
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens}}
    )


class Conversation:
    """One request on one connection, for a script to answer."""

    def __init__(self, sock: socket.socket, body: dict[str, Any], stopping: threading.Event, number: int) -> None:
        """``number`` counts the connection's requests from 1."""
        self.sock = sock
        self.number = number
        self.body = body
        self.max_tokens = int(body["max_tokens"])
        self.stopping = stopping
        self.keep = False

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def chunk(self, data: bytes) -> None:
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def head(self, status: str = "200 OK", kind: str = "text/event-stream; charset=utf-8", extra: str = "") -> None:
        self.send(
            f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n"
            f"x-serving-pod: llm-0\r\nx-serving-node: spot-1\r\n{extra}\r\n".encode()
        )

    def tokens(self, count: int, finish: str | None = None, pace_s: float = 0.002) -> None:
        for i in range(count):
            self.chunk(token(finish=finish if i == count - 1 else None))
            time.sleep(pace_s)

    def end(self, *events: bytes) -> None:
        for one in events:
            self.chunk(one)
        self.send(b"0\r\n\r\n")
        self.keep = True

    def hang(self) -> None:
        """Says nothing until the client goes away or the server stops."""
        self.sock.settimeout(0.05)
        while not self.stopping.is_set():
            try:
                if not self.sock.recv(1024):
                    return
            except TimeoutError:
                continue
            except OSError:
                return

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _plain(c: Conversation, status: str, body: bytes) -> None:
    c.send(
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )
    c.keep = True


def _start(c: Conversation, tokens: int | None = None, finish: str | None = None) -> None:
    c.head()
    c.chunk(ROLE)
    c.tokens(c.max_tokens if tokens is None else tokens, finish)


def whole_answer(tokens: int, finish: str = "length") -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": "word " * tokens}, "finish_reason": finish}
    usage = {"prompt_tokens": 7, "completion_tokens": tokens, "total_tokens": 7 + tokens}
    return json.dumps({"object": "chat.completion", "choices": [choice], "usage": usage}).encode()


def ok(c: Conversation) -> None:
    if not c.body["stream"]:
        time.sleep(0.01 * c.max_tokens)
        _plain(c, "200 OK", whole_answer(c.max_tokens))
        return
    _start(c, finish="length")
    c.end(usage(c.max_tokens), DONE)


def short(c: Conversation) -> None:
    _start(c, c.max_tokens // 2)
    c.end()


def no_done(c: Conversation) -> None:
    _start(c, finish="length")
    c.end(usage(c.max_tokens))


def fewer_by_usage(c: Conversation) -> None:
    _start(c, c.max_tokens - 1, finish="stop")
    c.end(usage(c.max_tokens - 1), DONE)


def abort(c: Conversation) -> None:
    _start(c, 2, finish="abort")
    c.end(DONE)


def error(c: Conversation) -> None:
    _start(c, 2)
    c.end(ERROR, DONE)


def cut(c: Conversation) -> None:
    _start(c, 2)


def reset(c: Conversation) -> None:
    _start(c, 2)
    c.reset()


def reset_first(c: Conversation) -> None:
    c.reset()


def close_first(c: Conversation) -> None:
    del c


def stall(c: Conversation) -> None:
    _start(c, 2)
    c.hang()


def mute(c: Conversation) -> None:
    c.head()
    c.hang()


def drip(c: Conversation) -> None:
    _start(c, 1)
    while not c.stopping.wait(0.03):
        c.chunk(token())


def not_json(c: Conversation) -> None:
    _start(c, 1)
    c.chunk(event(b"{oops"))
    c.end(usage(c.max_tokens), DONE)


def not_http(c: Conversation) -> None:
    c.send(b"SSH-2.0-OpenSSH_9.2\r\n")


def no_stream(c: Conversation) -> None:
    _plain(c, "200 OK", b'{"choices":[]}')


def busy(c: Conversation) -> None:
    _plain(c, "429 Too Many Requests", b'{"error":"slow down"}')


def unavailable(c: Conversation) -> None:
    _plain(c, "503 Service Unavailable", b'{"error":"no endpoint"}')


def unknown_model(c: Conversation) -> None:
    _plain(c, "404 Not Found", b'{"error":"no such model"}')


def moved(c: Conversation) -> None:
    _plain(c, "307 Temporary Redirect", b"")


def until_close(c: Conversation) -> None:
    c.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + ROLE)
    for i in range(c.max_tokens):
        c.send(token(finish="length" if i == c.max_tokens - 1 else None))
    c.send(usage(c.max_tokens) + DONE)


def text(c: Conversation) -> None:
    """Plain completions."""
    c.head()
    for i in range(c.max_tokens):
        finish = "length" if i == c.max_tokens - 1 else None
        c.chunk(event({"choices": [{"index": 0, "text": "word ", "finish_reason": finish}]}))
    c.end(usage(c.max_tokens), DONE)


def gzipped(c: Conversation, before: bytes = b"") -> None:
    events = [ROLE, *(token() for _ in range(c.max_tokens - 1)), token(finish="length"), usage(c.max_tokens), DONE]
    body = before + gzip.compress(b"".join(events))
    c.head(extra="Content-Encoding: gzip\r\n")
    for at in range(0, len(body), 7):
        c.chunk(body[at : at + 7])
    c.end()


def badly_gzipped(c: Conversation) -> None:
    gzipped(c, b"no")


def refuses_early(c: Conversation) -> None:
    c.send(b"HTTP/1.1 413 Payload Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def close_first_then_ok(c: Conversation) -> None:
    """Closes a connection that has carried a request before, and answers on a fresh one."""
    if c.number > 1:
        return
    ok(c)


SCRIPTS: dict[str, Script] = {
    f.__name__: f
    for f in (
        ok, short, no_done, fewer_by_usage, abort, error, cut, reset, reset_first, close_first, stall, mute, drip,
        not_json, not_http, no_stream, busy, unavailable, unknown_model, moved, until_close, text, gzipped,
        badly_gzipped, refuses_early, close_first_then_ok,
    )
}  # fmt: skip


class SseServer:
    """Serves on 127.0.0.1 until it is left. A request's model names its script, unless ``cycle`` has some."""

    def __init__(self, cycle: tuple[str, ...] = (), tls: ssl.SSLContext | None = None) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cycle = cycle
        self._tls = tls
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]
        self._lock = threading.Lock()
        self.bodies: list[dict[str, Any]] = []
        self.request_ids: list[str] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0

    def __enter__(self) -> SseServer:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(5)
        self._listener.close()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                sock, _ = self._listener.accept()
            except TimeoutError:
                continue
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(sock,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            try:
                sock = self._tls.wrap_socket(sock, server_side=True)
            except OSError:
                return
        number = 0
        with sock:
            while not self._stopping.is_set():
                request = self._read_request(sock)
                if request is None:
                    return
                request_id, body = request
                number += 1
                conversation = Conversation(sock, body, self._stopping, number)
                try:
                    SCRIPTS[self._script(request_id, body)](conversation)
                except OSError:
                    return
                if not conversation.keep:
                    return

    def _script(self, request_id: str, body: dict[str, Any]) -> str:
        with self._lock:
            self.bodies.append(body)
            self.request_ids.append(request_id)
        number = int(request_id.rpartition("-")[2])
        return self.cycle[number % len(self.cycle)] if self.cycle else str(body["model"])

    def _read_request(self, sock: socket.socket) -> tuple[str, dict[str, Any]] | None:
        data = b""
        sock.settimeout(0.05)
        while not self._stopping.is_set():
            try:
                got = sock.recv(1 << 16)
            except TimeoutError:
                continue
            except OSError:
                return None
            if not got:
                return None
            data += got
            head, found, body = data.partition(b"\r\n\r\n")
            lines = head.decode().split("\r\n")
            fields = dict(line.lower().split(": ", 1) for line in lines[1:]) if found else {}
            early = self.cycle == ("refuses_early",)
            if found and (early or len(body) >= int(fields["content-length"])):
                sock.settimeout(5)
                self.paths.append(lines[0].split()[1])
                self.headers.append(fields)
                if early:
                    return fields["x-request-id"], {"max_tokens": 1}
                return fields["x-request-id"], dict(json.loads(body))
        return None
