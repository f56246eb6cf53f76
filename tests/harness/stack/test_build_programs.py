"""Programs are built once, again when their pins change, and Go's own words reach people."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest
from programs import python_program

from harness.errors import TargetError
from harness.stack import build as build_module
from harness.stack import component as component_module
from harness.stack.build import build, is_built, recipe
from harness.stack.catalogue import COMPONENTS
from harness.stack.component import Component
from harness.stack.description import addons

GO = """
import pathlib, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
args = sys.argv[1:]
if "endless" in args[-1]:
    try:
        print("example.org/x/package", file=sys.stderr, flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        sys.exit(pathlib.Path("cleaned").write_text("up"))
packages = args[args.index("-o") + 2 :]
print("example.org/x/package", file=sys.stderr)
for package in packages:
    if "broken" not in package and "nothing" not in package:
        target = pathlib.Path(args[args.index("-o") + 1])
        (target / package.split("/")[-1] if target.is_dir() else target).write_text("built " + package)
with open("calls", "a") as calls: calls.write(" ".join(packages) + "\\n")
if "headless" in args[-1]:
    sys.exit("# example.org/c\\nPackage libfrob was not found in the pkg-config search path.\\n"
             "Package 'libfrob', required by 'virtual:world', not found")
if "broken" in args[-1]:
    sys.stderr.buffer.write(b"a file named \\xff\\n")
    sys.exit("go: downloading example.org/x v1.0.0\\nmain.go:3:2: undefined: frobnicate")
"""
"""Stands for `go`: writes what it was asked to build, or fails as Go fails."""

ONE = Component("one", "m", "example.org/one", ("1",))
HEADLESS = Component("headless", "m", "example.org/headless", ("1",))
BROKEN = Component("broken", "m", "example.org/broken", ("1",))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    python_program(tmp_path / "bin", "go", GO)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(component_module, "MODULES", tmp_path)
    folder = tmp_path / "m"
    folder.mkdir()
    for name in ("go.mod", "go.sum"):
        (folder / name).write_text("module m\n")
    return folder


def test_built_once_and_again_when_a_pin_or_a_flag_changes(module: Path, tmp_path: Path) -> None:
    said: list[str] = []
    first = build([ONE], said.append, tmp_path / "cache")
    again = build([ONE], said.append, tmp_path / "cache")
    assert (first[0].path, again[0].path) == (tmp_path / "cache" / "one",) * 2
    assert first[0].path.read_text() == "built example.org/one"
    assert (first[0].took_s > 0, again[0].took_s) == (True, 0)
    assert (module / "calls").read_text().splitlines() == ["example.org/one"]
    (module / "go.sum").write_text("another pin\n")
    build([ONE], said.append, tmp_path / "cache")
    build([replace(ONE, ldflags="-s")], said.append, tmp_path / "cache")
    assert (module / "calls").read_text().splitlines() == ["example.org/one"] * 3


def test_every_program_is_stripped_so_compilers_need_write_no_debug_tables() -> None:
    assert [
        each.name
        for each in (*COMPONENTS.values(), *(part for addon in addons().values() for part in addon.components))
        if {"-s", "-w"} - set(each.ldflags.split())
    ] == []


def test_a_program_that_is_not_as_it_was_built_is_built_again(module: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for spoil in (b"", b"#!/bin/sh\n"):
        build([ONE], lambda _: None, cache)
        (cache / "one").write_bytes(spoil)
        assert not is_built(ONE, cache)
    assert build([ONE], lambda _: None, cache)[0].took_s > 0
    (cache / "one.json").write_text("[]")
    assert not is_built(ONE, cache)
    # A note of before sizes were written down: what Go wrote into an addon's program tells.
    addon = replace(ONE, version_args=(), source="example.org/one")
    (cache / "one.json").write_text(json.dumps({"recipe": recipe(addon)}))
    assert not is_built(addon, cache)
    (cache / "one").write_bytes(b"\x7fELF\nmod\texample.org/one\tv1.0.0\n")
    assert is_built(addon, cache)


def test_a_failed_build_shows_what_go_said_and_keeps_what_was_built(module: Path, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="undefined: frobnicate") as failed:
        build([ONE, BROKEN], lambda _: None, tmp_path / "cache")
    assert "broken" in str(failed.value)
    assert (tmp_path / "cache" / "one").exists()
    assert not (tmp_path / "cache" / "broken").exists()
    build([ONE], lambda _: None, tmp_path / "cache")
    assert (module / "calls").read_text().splitlines() == ["example.org/one example.org/broken"]
    assert [path.name for path in (tmp_path / "cache").glob(".*.parts")] == []


def test_a_go_that_builds_nothing_and_says_nothing_is_told(module: Path, tmp_path: Path) -> None:
    nothing = Component("nothing", "m", "example.org/nothing", ("1",))
    with pytest.raises(TargetError, match=r"Go built no program nothing and said nothing\n.*has to be a main package"):
        build([ONE, nothing], lambda _: None, tmp_path / "cache")
    assert is_built(ONE, tmp_path / "cache")


def test_a_full_disk_keeps_no_half_of_a_build(module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(build_module, "_put_in_place", full)
    with pytest.raises(OSError, match="No space left"):
        build([ONE], lambda _: None, tmp_path / "cache")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_headers_that_are_missing_are_named_with_the_package_that_has_them(module: Path, tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="Package libfrob was not found") as failed:
        build([HEADLESS], lambda _: None, tmp_path / "cache")
    assert (failed.value.hint or "").startswith("install the headers of libfrob (Debian: libfrob-dev); in ")


def test_programs_of_one_module_and_the_same_flags_are_built_at_once(module: Path, tmp_path: Path) -> None:
    """A linker takes one core, so that programs that are built one after another leave the others idle."""
    two, three = (Component(name, "m", f"example.org/{name}", ("1",)) for name in ("two", "three"))
    tagged, renamed = replace(two, name="tagged", package="x/tagged", tags=("a",)), replace(two, name="renamed")
    asked = [ONE, tagged, two, renamed, three, two]
    (module.parent / "cache").mkdir()
    build([two], lambda _: None, tmp_path / "cache")
    built = build(asked, lambda _: None, tmp_path / "cache")
    assert [(each.name, each.path.read_text()) for each in built] == [
        (each.name, f"built {each.package}") for each in asked
    ]
    assert (module / "calls").read_text().splitlines() == [
        "example.org/two", "example.org/one example.org/three", "x/tagged", "example.org/two",
    ]  # fmt: skip
    assert [each.took_s > 0 for each in built] == [True, True, False, True, True, False]


def test_without_go_one_error_says_what_to_do(module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(TargetError, match="no `go` on PATH"):
        build([ONE], lambda _: None, tmp_path / "cache")


def test_a_build_that_is_given_up_lets_go_clean_up(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SIGTERM the real one leaves its compilers and their folder, on an interrupt it does not."""
    monkeypatch.setattr(build_module, "PROGRESS_S", 0.0)

    def give_up(text: str) -> None:
        if "packages" in text:
            raise SystemExit("ended by SIGTERM")

    with pytest.raises(SystemExit):
        build([Component("endless", "m", "example.org/endless", ("1",))], give_up, tmp_path / "cache")
    assert (module / "cleaned").exists()
    assert not (tmp_path / "cache" / "endless").exists()
