"""The client and its wire within this process: TLS, names, keys, flavours, gzip, reused connections, silence."""

from __future__ import annotations

import datetime
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gevent
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from sse_server import SseServer

from harness.clock import RunClock, monotonic_ns
from harness.errors import BadInput
from harness.history.tables import Outcome
from harness.run.load.api import COMPLETIONS, Api
from harness.run.load.arrival import Arrival
from harness.run.load.client import ChatClient
from harness.run.load.exchange import Exchange
from harness.run.load.limits import SendLimits
from harness.run.load.openloop import OpenLoop
from harness.run.load.outcome import judge_outcome
from harness.run.load.prompts import Bodies
from harness.run.load.records import Records
from harness.run.load.wire import Wire

LIMITS = SendLimits(connect_timeout_s=5, first_token_timeout_s=5, stall_timeout_s=5, deadline_s=10)
WITHIN_S = 30
TOKENS = 4


class Client:
    """A client with a running wire, which waits for what it sends."""

    def __init__(self, api: Api, limits: SendLimits = LIMITS) -> None:
        self.clock = RunClock(monotonic_ns())
        self.wire = Wire(self.clock)
        self.chat = ChatClient(api, limits, self.clock, self.wire, "11")
        self.bodies = Bodies(api.model, 11, api.flavour)
        self._greenlet = gevent.spawn(self.wire.run)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._greenlet.kill()
        self.chat.close()
        self.wire.close()

    def ask(self, request_id: int = 0, **more: Any) -> Exchange:
        arrival = Arrival(request_id, 0, 9, TOKENS, "", "", **more)
        exchange = Exchange.of(arrival, self.clock.now_ns())
        ended: list[Exchange] = []
        self.chat.start(exchange, self.bodies.of(arrival), ended.append)
        with gevent.Timeout(WITHIN_S):
            while not ended:
                gevent.sleep(0.002)
        return exchange


def outcome_of(exchange: Exchange) -> tuple[Outcome, str]:
    return judge_outcome(exchange.facts)


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, Path]:
    """A server's context and the file that a client has to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    ca, both = folder / "ca.pem", folder / "server.pem"
    ca.write_bytes(built.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both.write_bytes(private + ca.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context, ca


def test_tls_with_an_authority_of_ones_own(tmp_path: Path) -> None:
    context, ca = certificate(tmp_path, "localhost")
    with SseServer(cycle=("ok",), tls=context) as server:
        url = server.url.replace("http://127.0.0.1", "https://localhost")
        with Client(Api(url, "tiny", ca_file=ca)) as client:
            first, second = client.ask(0), client.ask(1)
        with Client(Api(url, "tiny")) as distrusting:
            refused = distrusting.ask(2)
    assert [outcome_of(e)[0] for e in (first, second)] == [Outcome.OK, Outcome.OK]
    assert (first.reused, second.reused) == (False, True)
    assert first.facts.chunks == TOKENS and first.connected_ns is not None and first.connected_ns > first.sent_ns
    outcome, reason = outcome_of(refused)
    assert outcome is Outcome.PROTOCOL_ERROR and "certificate verify failed" in reason.lower()


def test_a_certificate_for_another_name_is_none(tmp_path: Path) -> None:
    context, ca = certificate(tmp_path, "somewhere.else")
    with SseServer(cycle=("ok",), tls=context) as server:
        url = server.url.replace("http://127.0.0.1", "https://localhost")
        with Client(Api(url, "tiny", ca_file=ca)) as client:
            exchange = client.ask()
    assert "certificate" in outcome_of(exchange)[1].lower()


def test_an_authority_that_is_none_is_one_clear_mistake(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("hello")
    with pytest.raises(BadInput, match="certificate"):
        Client(Api("https://localhost:1", "tiny", ca_file=tmp_path / "ca.pem"))


def test_a_name_of_several_addresses_is_tried_one_by_one() -> None:
    """``localhost`` may be ::1 first, where nobody listens."""
    with SseServer(cycle=("ok",)) as server, Client(Api(server.url.replace("127.0.0.1", "localhost"), "m")) as client:
        assert outcome_of(client.ask())[0] is Outcome.OK


def test_a_name_that_is_none() -> None:
    with Client(Api("http://no-such-host.invalid:80", "m"), replace(LIMITS, connect_timeout_s=20)) as client:
        outcome, reason = outcome_of(client.ask())
    assert outcome in (Outcome.PROTOCOL_ERROR, Outcome.CONNECT_TIMEOUT) and "no-such-host.invalid" in reason


@pytest.mark.parametrize("base", ["", "/v1", "/v1/"])
def test_plain_completions_and_headers_and_the_key(monkeypatch: pytest.MonkeyPatch, base: str) -> None:
    monkeypatch.setenv("TEST_KEY", "sk-secret")
    with SseServer(cycle=("text",)) as server:
        api = Api(server.url + base, "tiny", COMPLETIONS, headers={"X-Team": "blue"}, key_env="TEST_KEY")
        with Client(api) as client:
            exchange = client.ask()
    assert outcome_of(exchange)[0] is Outcome.OK and exchange.facts.chunks == TOKENS
    assert len(server.bodies[0]["prompt"].split()) == 9 and "messages" not in server.bodies[0]
    assert server.paths == ["/v1/completions"]
    assert (server.headers[0]["x-team"], server.headers[0]["authorization"]) == ("blue", "bearer sk-secret")


def test_a_key_that_is_not_there_is_said_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEST_KEY", raising=False)
    with pytest.raises(BadInput, match="TEST_KEY"):
        Client(Api("http://127.0.0.1:1", "tiny", key_env="TEST_KEY"))


def test_the_key_reaches_no_record(tmp_path: Path) -> None:
    records = Records(tmp_path / "records.jsonl", secret='sk-"x')
    records.end({"request_id": 1, "reason": 'Incorrect API key provided: sk-"x'})
    records.close()
    assert json.loads((tmp_path / "records.jsonl").read_text())["reason"] == "Incorrect API key provided: [API key]"


def test_gzip_is_read_as_it_comes() -> None:
    with SseServer(cycle=("gzipped", "badly_gzipped")) as server, Client(Api(server.url, "m")) as client:
        good, bad = client.ask(0), client.ask(1)
    assert outcome_of(good)[0] is Outcome.OK and good.facts.chunks == TOKENS
    assert good.first_token_ns is not None and good.last_token_ns is not None
    assert outcome_of(bad)[0] is Outcome.PROTOCOL_ERROR and "not gzip" in outcome_of(bad)[1]


def test_an_answer_to_a_request_that_was_not_read_counts() -> None:
    """A server may refuse a long request before it has taken all of it."""
    with SseServer(cycle=("refuses_early",)) as server, Client(Api(server.url, "m")) as client:
        arrival = Arrival(0, 0, 400_000, TOKENS, "", "")
        exchange = Exchange.of(arrival, client.clock.now_ns())
        ended: list[Exchange] = []
        client.chat.start(exchange, client.bodies.of(arrival), ended.append)
        with gevent.Timeout(WITHIN_S):
            while not ended:
                gevent.sleep(0.002)
    assert outcome_of(exchange)[0] in (Outcome.HTTP_4XX, Outcome.RESET_BEFORE_HEADERS)


@pytest.mark.parametrize(("retry", "outcomes", "attempts"), [(False, ["reset_before_headers"], 0), (True, ["ok"], 1)])
def test_a_kept_connection_that_was_closed_is_told_apart(
    tmp_path: Path, retry: bool, outcomes: list[str], attempts: int
) -> None:
    """The first answer keeps its connection; the second request comes while the server closes it."""
    with SseServer(cycle=("ok", "close_first", "ok")) as server, Client(Api(server.url, "m")) as client:
        assert outcome_of(client.ask(0))[0] is Outcome.OK
        server.cycle = ("close_first",) if not retry else ("close_first_then_ok",)
        loop = OpenLoop(
            [Arrival(1, 0, 9, TOKENS, "", "")], client.chat, client.bodies, Records(tmp_path / "r.jsonl"),
            client.clock, 10, lambda row, received_bytes: None, retry_reset_reused=retry,
        )  # fmt: skip
        with gevent.Timeout(WITHIN_S):
            loop.run(lambda: client.clock.now_ns())
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    ends = [line for line in lines if line["e"] == "end"]
    assert [line["outcome"] for line in ends] == outcomes
    assert ends[0]["attempt"] == 1 + attempts
    first = [line for line in lines if line["e"] == "attempt"]
    assert [(line["outcome"], line["reused"]) for line in first] == [("reset_before_headers", True)] * attempts


class Heard:
    """A peer that notes what it hears, and when that was read; each hearing takes some time."""

    def __init__(self, notes: list[tuple[str, object, int, int]], name: str, clock: RunClock, takes_s: float) -> None:
        self.notes, self.name, self.clock, self.takes_s = notes, name, clock, takes_s
        self.on_writable: list[Callable[[], object]] = []

    def take(self, data: bytes, read_ns: int) -> None:
        threading.Event().wait(self.takes_s)
        self.notes.append((self.name, data, read_ns, self.clock.now_ns()))

    def broken(self, error: OSError) -> None:
        self.notes.append((self.name, type(error), 0, self.clock.now_ns()))

    def writable(self) -> None:
        while self.on_writable:
            self.on_writable.pop()()


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    made = [socket.socketpair() for _ in range(40)]
    for ours, _ in made:
        ours.setblocking(False)
    yield made
    for pair in made:
        for one in pair:
            one.close()


Pairs = list[tuple[socket.socket, socket.socket]]


def test_times_are_those_of_the_reads_however_long_others_take_to_parse(pairs: Pairs) -> None:
    """Two sockets are readable in one round: the second's bytes are stamped before the first's are parsed."""
    clock = RunClock(monotonic_ns())
    wire = Wire(clock)
    notes: list[tuple[str, object, int, int]] = []
    for index, (ours, theirs) in enumerate(pairs[:2]):
        wire.watch(ours.fileno(), Heard(notes, str(index), clock, 0.05))
        theirs.send(b"x")
    wire.read_what_is_there()
    wire.close()
    assert len(notes) == 2
    assert notes[1][2] < notes[0][3]  # read before the first was through


def test_what_comes_while_many_are_read_is_stamped_before_any_of_them_is_parsed(pairs: Pairs) -> None:
    clock = RunClock(monotonic_ns())
    wire = Wire(clock)
    notes: list[tuple[str, object, int, int]] = []
    for index, (ours, theirs) in enumerate(pairs):
        wire.watch(ours.fileno(), peer := Heard(notes, str(index), clock, 0.001), write=index == len(pairs) - 1)
        if index:
            theirs.send(b"x")
    late = pairs[0][1]
    peer.on_writable.append(lambda: late.send(b"late"))  # the last one is looked at when all others have been read
    wire.read_what_is_there()
    wire.close()
    assert [note[1] for note in notes if note[0] == "0"] == [b"late"]
    assert max(note[2] for note in notes) < notes[0][3]


def test_a_broken_connection_is_told_once_and_after_what_had_come_on_it(pairs: Pairs) -> None:
    """Also where so many are read that the wire looks again."""
    clock = RunClock(monotonic_ns())
    wire = Wire(clock)
    notes: list[tuple[str, object, int, int]] = []
    server = socket.create_server(("127.0.0.1", 0))
    ours = socket.create_connection(server.getsockname())
    theirs, _ = server.accept()
    ours.setblocking(False)
    wire.watch(ours.fileno(), Heard(notes, "broken", clock, 0))
    for index, pair in enumerate(pairs):
        wire.watch(pair[0].fileno(), peer := Heard(notes, str(index), clock, 0), write=index == len(pairs) - 1)
        pair[1].send(b"x")
    theirs.send(b"data")

    def reset() -> None:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        theirs.close()

    peer.on_writable.append(reset)
    wire.read_what_is_there()
    wire.close()
    ours.close()
    server.close()
    assert [note[1] for note in notes if note[0] == "broken"] == [b"data", ConnectionResetError]
