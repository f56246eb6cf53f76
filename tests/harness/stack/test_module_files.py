"""Files of a Go module are taken once for each version, and what is missing is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import python_program

from harness.errors import TargetError
from harness.stack.description import FILE, Described
from harness.stack.find_addons import find_addons
from harness.stack.module_files import files_of, is_taken, take

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
