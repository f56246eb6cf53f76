"""How the programs of a standing cluster are told, and what answers in their place."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from harness.errors import BadInput, TargetError
from harness.targets.base import CONNECTION_FILE, Connection
from harness.targets.stack_status import as_text, programs


@contextmanager
def standing(folder: Path, answer: bytes) -> Iterator[None]:
    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is said."""

    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        Connection("controlplane", folder / "k", "http://s", None, "inference", 1.0, stack_url=url).write(
            folder / CONNECTION_FILE
        )
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def test_each_program_is_told_with_its_state(tmp_path: Path) -> None:
    etcd = b'{"name": "etcd", "running": false, "halted": false, "frozen": false, "log": "logs/etcd.log"}'
    with standing(tmp_path, b'{"programs": [' + etcd + b"]}"):
        found = programs(tmp_path)
    assert as_text(found).split() == ["etcd", "died", "logs/etcd.log"]
    assert as_text([]) == ""


@pytest.mark.parametrize(
    "answer", [b"", b"<html>", b"[]", b'{"programs": {"a": 1}}', b'{"programs": [{"name": 1}]}', b"{}"]
)
def test_another_program_at_its_port_is_told(tmp_path: Path, answer: bytes) -> None:
    with standing(tmp_path, answer), pytest.raises(TargetError, match="is no cluster of ours"):
        programs(tmp_path)


@pytest.mark.parametrize("url", ["", "nonsense", "http://h:abc"])
def test_an_address_that_is_none_is_told(tmp_path: Path, url: str) -> None:
    Connection("controlplane", tmp_path / "k", "http://s", None, "inference", 1.0, stack_url=url).write(
        tmp_path / CONNECTION_FILE
    )
    with pytest.raises(TargetError, match="the cluster does not answer"):
        programs(tmp_path)


def test_a_holder_that_was_killed_is_told(tmp_path: Path) -> None:
    with standing(tmp_path, b""):
        pass
    with pytest.raises(TargetError, match="the process that held the cluster is gone") as raised:
        programs(tmp_path)
    assert raised.value.hint == "gpu-harness stack up NAME... starts it anew"


def test_a_cluster_that_died_is_told_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no cluster of ours is up"):
        programs(tmp_path)
    (tmp_path / "process.json").write_text("{}")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "holder.log").write_text(
        "... etcd is up\ngpu-harness: the cluster is down: kwok was killed by SIGKILL\n"
    )
    with pytest.raises(TargetError, match=r"^the cluster is down: kwok was killed by SIGKILL"):
        programs(tmp_path)
