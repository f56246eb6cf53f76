"""What was there before is there still, whatever becomes of the new one."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from demo import demo
from story import write_run

from harness.checks.judge import judge
from harness.errors import BadInput
from harness.inspection.command import _write
from harness.replacing import replace_text
from harness.report.write import REPORT_FILE, write_report
from harness.run.judging import write_verdict
from harness.run.rundir import open_existing
from harness.spec.checks import GracefulDrainSpec


@contextmanager
def files_end_at(size_bytes: int) -> Iterator[None]:
    """As on a disk that is full after so many bytes of a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def junit(path: Path) -> None:
    with pytest.raises(BadInput, match="--junit cannot be written"):
        _write(path, "n" * 100)


def text(path: Path) -> None:
    with pytest.raises(OSError, match="File too large"):
        replace_text(path, "n" * 100)


@pytest.mark.parametrize("write", [text, junit])
@pytest.mark.parametrize("before", ["old", None])
def test_a_full_disk_costs_nothing_and_leaves_nothing(
    tmp_path: Path, write: Callable[[Path], None], before: str | None
) -> None:
    path = tmp_path / "file"
    if before is not None:
        path.write_text(before)
    with files_end_at(10):
        write(path)
    assert [p.read_text() for p in tmp_path.iterdir()] == ([before] if before else [])


def test_a_verdict_and_a_report_outlive_a_full_disk(tmp_path: Path) -> None:
    history = demo()
    opened = open_existing(write_run(history, tmp_path / "run"))
    verdict = judge(history, [GracefulDrainSpec()])
    write_verdict(opened, verdict)
    (opened.path / REPORT_FILE).write_text("old")
    before = opened.verdict.read_text()
    with files_end_at(10):
        with pytest.raises(OSError, match="File too large"):
            write_verdict(opened, verdict)
        with pytest.raises(OSError, match="File too large"):
            write_report(opened.path, history, verdict, {})
    assert opened.verdict.read_text() == before
    assert (opened.path / REPORT_FILE).read_text() == "old"


def test_links_modes_and_devices_are_kept(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    replace_text(link, "new")
    assert link.is_symlink() and real.read_text() == "new" and real.stat().st_mode & 0o777 == 0o640
    replace_text(Path(os.devnull), "new")
    assert not Path(os.devnull).is_file()
