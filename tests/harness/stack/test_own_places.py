"""A folder at a fixed place shows the run's own files to the program that insists on it, and to nobody else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.stack.own_places import in_its_own_view

CAT = ("sh", "-c", 'cat "$1"/key', "sh")


def can_unshare() -> bool:
    return (
        subprocess.run(in_its_own_view(("true",), {"/tmp": "/tmp"}), capture_output=True, check=False).returncode == 0
    )


def test_one_that_insists_on_nothing_is_started_as_it_is() -> None:
    assert in_its_own_view(("x", "--flag"), {}) == ("x", "--flag")


def test_each_finds_its_own_files_at_the_same_place(tmp_path: Path) -> None:
    if not can_unshare():
        pytest.skip("no mount namespaces here")
    place = tmp_path / "fixed" / "certs"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "key").write_text(name)
        argv = in_its_own_view((*CAT, str(place)), {str(place): str(tmp_path / name)})
        assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == name
    assert list(place.iterdir()) == [], "outside nothing is seen of it"


def test_a_place_that_cannot_be_had_is_told_and_nothing_is_started(tmp_path: Path) -> None:
    if not can_unshare():
        pytest.skip("no mount namespaces here")
    argv = in_its_own_view(("echo", "started"), {str(tmp_path / "here"): str(tmp_path / "nowhere")})
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "") and "nowhere" in ended.stderr
