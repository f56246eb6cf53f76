"""A real run against a server that says the worst things, with a key that it quotes back, and secrets in pods.

Nothing of what it said may do anything on a terminal or in a file for people, and no secret may be in any file.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.etree import ElementTree as ET

import pandas as pd
import pytest
import yaml
import zstandard
from running import finish, processes_naming, start

SHORT = Path(__file__).parent / "short"
KEY, HF, AWS, CLUSTER = (f"planted-{name}-0123456789abcdef" for name in ("key", "hf", "aws", "kube"))
HOSTILE = "\x1b[2J\x1b]0;pwned\x07</script><script>alert(1)</script>\r\n# heading\n| cell |\x00\u202egnp ]]> =cmd()"
LIES = [
    "401 {key} is no key of ours, said the server",
    HOSTILE,
    "x" * 1_000_000,
    '<img src="http://evil/" onerror=alert(2)> [click](http://evil) `code`',
]


class Worst(BaseHTTPRequestHandler):
    """Each answer another way to be hostile, by the number of the request."""

    numbers = iter(range(1_000_000))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        number = next(self.numbers)
        said = LIES[number % len(LIES)].replace("{key}", self.headers["Authorization"])
        match number % 5:
            case 0:
                self._send(500, "text/plain", said.encode())
            case 1:
                self._send(401, "application/json", json.dumps({"error": {"message": said}}).encode())
            case 2:
                self._send(200, "text/event-stream", _event({"error": {"message": said, "code": 400}}))
            case 3:
                bad = b'data: {"choices": [{"delta": {"content": "\xff\xfe\x80"}}]}\n\n'
                self._send(200, "text/event-stream", bad + b"data: " + said.encode().replace(b"\n", b" ") + b"\n\n")
            case 4:
                tokens = _event({"choices": [{"index": 0, "delta": {"content": said}, "finish_reason": "stop"}]})
                self._send(200, "text/event-stream", tokens + b"data: [DONE]\n\n")

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status, "<b>no")
        self.send_header("Content-Type", kind)
        self.send_header("x-serving-pod", "llm<b>\u00ff" + self.headers["Authorization"])
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        return


def _event(body: object) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Worst)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def prepare(tmp_path: Path, url: str) -> Path:
    """The short experiment against that server; its pods carry secrets as careless people write them."""
    raw = yaml.safe_load((SHORT / "experiment.yaml").read_text())
    workload = raw["extensions"][0]["workload"]
    workload |= {"url": url, "api_key_env": "PLANTED_KEY"}
    objects = list(yaml.safe_load_all((SHORT / "workload.yaml").read_text()))
    container = next(o for o in objects if o["kind"] == "Deployment")["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "HF_TOKEN", "value": HF}]
    container["args"] += ["--api-key", AWS]
    (tmp_path / "workload.yaml").write_text(yaml.safe_dump_all(objects))
    for name in ("load.yaml", "extra.yaml"):
        (tmp_path / name).write_text((SHORT / name).read_text())
    path = tmp_path / "experiment.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path


def whole_text(file: Path) -> str:
    """What a file says, whatever it is packed in."""
    if file.suffix == ".zst":
        with file.open("rb") as packed:
            return zstandard.ZstdDecompressor().stream_reader(packed).read().decode(errors="replace")
    if file.suffix == ".parquet":
        return str(pd.read_parquet(file).to_csv())
    return file.read_bytes().decode(errors="replace")


def test_what_a_server_says_does_nothing_and_no_secret_is_in_any_file(tmp_path: Path, url: str) -> None:
    experiment, reports = prepare(tmp_path, url), tmp_path / "reports"
    secrets = {"PLANTED_KEY": KEY, "HF_TOKEN": HF, "AWS_SECRET_ACCESS_KEY": AWS, "KUBE_TOKEN": CLUSTER}
    process = start("run", str(experiment), "--plain", "--reports", str(reports), env=secrets)
    argv: set[str] = set()
    while not list(reports.glob("*/*/load/go")) and process.poll() is None:
        argv |= set(processes_naming(str(tmp_path)))
        time.sleep(0.2)
    argv |= set(processes_naming(str(tmp_path)))
    ended = finish(process, reports)
    assert ended.code in (0, 1, 2), ended.out
    assert len(argv) >= 3 and ended.folder is not None
    planted = (KEY, HF, AWS, CLUSTER)
    kept = [file for file in ended.folder.rglob("*") if file.is_file()]
    assert len(kept) > 15
    leaks = [f"{file.name}: {s}" for file in kept for s in planted if s[:14] in whole_text(file)]
    assert leaks == []
    assert not [line for line in argv if any(s in line for s in planted)]
    assert not any(s in ended.out for s in planted)
    harmless(ended.folder, ended.out)


def harmless(folder: Path, out: str) -> None:
    requests = pd.read_parquet(folder / "history" / "requests.parquet")
    assert requests["reason"].str.contains("pwned").any(), "nothing hostile was recorded, so nothing was tested"
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", out)
    html = (folder / "report.html").read_text()
    assert "<script>alert" not in html and "onerror=alert(2)>" not in html.replace("&gt;", "")
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202e]", html)
    assert len(html) < 8_000_000
    ET.parse(folder / "junit.xml")
    assert json.loads((folder / "verdict.json").read_text())["status"] in ("fail", "unknown")
    summary = (folder / "summary.md").read_text()
    assert all(c == "\n" or c.isprintable() for c in summary) and "\n# heading" not in summary
