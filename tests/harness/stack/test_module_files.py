"""Files of a Go module are taken once for each version, and what is missing is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import python_program

from harness.errors import BadInput, TargetError
from harness.stack.description import FILE, Described
from harness.stack.find_addons import find_addons
from harness.stack.module_files import NOTE, files_of, is_taken, kept_dir, take

DESCRIPTION = """about: x
source: example.org/x
page: https://example.org
install: kubectl apply
finds: xs.example.org
crds: [config/crds/*.yaml]
programs:
  - {name: x, package: example.org/x/cmd, health: "http://h"}
"""


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Described:
    module = tmp_path / "modules" / "example.org" / "x@v1.2.3"
    (module / "config" / "crds").mkdir(parents=True)
    for name in ("b.yaml", "a.yaml", "kustomization.yaml"):
        (module / "config" / "crds" / name).write_text(f"name: {name}\n")
    python_program(tmp_path / "bin", "go", f"print({str(tmp_path / 'modules')!r})\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    folder = tmp_path / "controlplane" / "x"
    folder.mkdir(parents=True)
    (folder / FILE).write_text(DESCRIPTION)
    (folder / "go.mod").write_text("require example.org/x v1.2.3\n")
    return Described(folder)


def test_taken_once_and_read_without_go(described: Described, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    assert not is_taken(described, cache)
    take(described, cache)
    monkeypatch.setenv("PATH", "")
    assert is_taken(described, cache)
    take(described, cache)
    assert [file.name for file in files_of(described, described.addon.crds, cache)] == ["a.yaml", "b.yaml"]


def test_another_version_is_taken_anew(described: Described, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    take(described, cache)
    (described.folder / "go.mod").write_text("require example.org/x v1.2.4\n")
    assert not is_taken(Described(described.folder), cache)


def test_a_file_that_the_module_lacks_is_named(described: Described, tmp_path: Path) -> None:
    text = DESCRIPTION.replace("config/crds/*.yaml", "config/crd/*.yaml")
    (described.folder / FILE).write_text(text)
    with pytest.raises(TargetError, match=r"example.org/x has no file config/crd/\*.yaml"):
        take(Described(described.folder), tmp_path / "cache")


def test_what_is_missing_comes_with_the_command_that_builds_it(described: Described, tmp_path: Path) -> None:
    with pytest.raises(TargetError) as missing:
        find_addons([described], None, tmp_path / "cache")
    assert "not built: x" in str(missing.value) and "x 1.2.3" in str(missing.value)
    assert "gpu-harness stack build x" in str(missing.value)


def test_a_program_of_another_version_is_named(described: Described, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    take(described, cache)
    (cache / "bin").mkdir()
    (cache / "bin" / "x").write_bytes(b"\x7fELF...\nmod\tcontrolplane/x\t(devel)\t\ndep\texample.org/x\tv1.2.2\th1:\n")
    with pytest.raises(TargetError, match=r"x 1.2.3 \(.*/x is version 1.2.2\)"):
        find_addons([described], None, cache)
    (cache / "bin" / "x").write_bytes(b"\x7fELF...\nmod\tcontrolplane/x\t(devel)\t\ndep\texample.org/x\tv1.2.3\th1:\n")
    assert find_addons([described], None, cache).versions() == {"x": "1.2.3"}
    (cache / "bin" / "x.json").write_text('{"size": 4711}')
    with pytest.raises(TargetError, match=r"x 1.2.3 \(.*/x has \d+ bytes of the 4711 that were built\)"):
        find_addons([described], None, cache)


def test_another_version_in_bin_dir_is_refused_outright(described: Described, tmp_path: Path) -> None:
    cache, given = tmp_path / "cache", tmp_path / "given"
    take(described, cache)
    for folder, version in ((cache / "bin", "1.2.3"), (given, "1.2.2")):
        folder.mkdir()
        (folder / "x").write_text(f"\nmod\tcontrolplane/x\t(devel)\t\ndep\texample.org/x\tv{version}\th1:\n")
    with pytest.raises(BadInput, match=r"--bin-dir: .*/given/x is version 1.2.2, needed is 1.2.3"):
        find_addons([described], given, cache)
    (given / "x").write_text("#!/bin/sh")
    with pytest.raises(BadInput, match=r"--bin-dir: .*/given/x is no Go program of that module"):
        find_addons([described], given, cache)
    (given / "x").unlink()
    assert find_addons([described], given, cache).versions() == {"x": "1.2.3"}


@pytest.mark.parametrize("left", [None, "name: b"])
def test_files_that_are_half_there_are_taken_anew(described: Described, tmp_path: Path, left: str | None) -> None:
    cache = tmp_path / "cache"
    file = take(described, cache) / "config" / "crds" / "b.yaml"
    file.unlink() if left is None else file.write_text(left)
    assert not is_taken(described, cache)
    take(described, cache)
    assert is_taken(described, cache)
    assert file.read_text() == "name: b.yaml\n"


@pytest.mark.parametrize("note", [b"", b"\xff\xfe", b"\n\n", None])
def test_a_note_that_nobody_can_read_is_none(described: Described, tmp_path: Path, note: bytes | None) -> None:
    cache = tmp_path / "cache"
    take(described, cache)
    told = kept_dir(described, cache) / NOTE
    assert is_taken(described, cache)
    recipe = told.read_text().splitlines(keepends=True)[0]
    told.write_bytes(recipe.encode() + b"nonsense\n" if note is None else note)
    assert not is_taken(described, cache)
    told.write_text(recipe)  # of before the files were noted
    assert is_taken(described, cache)
