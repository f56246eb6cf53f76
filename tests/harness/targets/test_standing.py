"""A cluster that stands is taken down in good order, for as long as its target may need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.targets import standing

HOLDER = """
import pathlib, signal, sys, time
log, ended = pathlib.Path({log!r}), pathlib.Path({ended!r})

def end(*_):
    log.open("a").write("... deleting the cluster\\n")
    time.sleep(0.5)
    ended.write_text("in good order")
    sys.exit(0)

signal.signal(signal.SIGTERM, end)
log.write_text("... bringing it up\\n")
while True:
    time.sleep(0.05)
"""


@pytest.mark.parametrize(("target", "in_good_order"), [("kind", True), ("embedded", False)])
def test_each_target_has_its_own_time_to_go_down(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    target: str,
    in_good_order: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(standing, "DOWN_TIMEOUT_S", 0.1)
    log, ended = tmp_path / standing.FOLDER / "logs" / standing.HOLDER_LOG, tmp_path / "ended"
    log.parent.mkdir(parents=True)
    process = subprocess.Popen([sys.executable, "-c", HOLDER.format(log=str(log), ended=str(ended))])
    try:
        standing.record(process.pid, target)
        while not (log.exists() and log.read_text()):
            assert process.poll() is None
        assert standing.take_down() == f"stopped the cluster (process {process.pid})"
    finally:
        process.kill()
        process.wait()
    assert ended.exists() is in_good_order
    assert not in_good_order or "... deleting the cluster" in capsys.readouterr().err
    assert standing.take_down() == "no cluster of ours is up in this folder"
