"""What is taken for left behind by a run, and what is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from node_leavings import inhabitants, still_there, things

HOLD = "import sys; print(1, flush=True); sys.stdin.read()"


def test_a_process_that_names_the_folder_is_seen_and_its_end_too(tmp_path: Path) -> None:
    before = things(tmp_path)
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        (found,) = things(tmp_path) - before
        assert found.startswith(f"process {process.pid} ")
        assert inhabitants(tmp_path) == set(), "it lives in our own namespaces"
        process.stdin.close()
    assert things(tmp_path) == before
    (tmp_path / "machines").mkdir()
    assert things(tmp_path) - before == {f"file {tmp_path / 'machines'}"}


@pytest.mark.skipif(os.geteuid() != 0, reason="making a namespace needs root")
def test_a_process_in_a_namespace_of_the_run_is_seen_until_it_ends(tmp_path: Path) -> None:
    argv = ["unshare", "--uts", sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        lived = inhabitants(tmp_path)
        assert len(lived) == 1 and still_there(lived) == lived
        process.stdin.close()
    assert still_there(lived) == set()
