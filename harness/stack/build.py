"""Builds real programs from their Go modules into the user's cache, once each.

The folders under ``controlplane/`` pin every module by hash, so a build is the same everywhere. One that is cut short
goes on where it was: each program is put in place whole, and Go keeps what it compiled.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BadInput, TargetError, Where
from harness.stack.cache import built_dir, cut_short, noted
from harness.stack.component import Component
from harness.stack.find import written_version

Say = Callable[[str], None]
PROGRESS_S = 5.0
_COMPILED_PACKAGE = re.compile(r"^[\w.~/-]+$")
"""With -v, go build prints the import path of each package it compiles, one a line."""
_NO_HEADERS = re.compile(r"^Package '?([\w.+-]+?)'?,? was not found in the pkg-config search path")
NO_DWARF = "-gcflags=all=-dwarf=false"
"""The linker leaves a debugger's tables out of a program (``-s -w``): compilers need not write them either. That is a
fifth of a build: kubectl 1.37.2 with nothing cached took 242 processor seconds for 303, and 693 MB of cache for 847."""


@dataclass(frozen=True, slots=True)
class Built:
    """``took_s`` is of the ``go build`` that made it, and others with it; 0 for a program that was there already."""

    name: str
    path: Path
    size_mb: float
    took_s: float


def build(components: Sequence[Component], say: Say, folder: Path | None = None) -> list[Built]:
    """Each of ``components`` in ``folder`` (the cache, by default). TargetError with Go's own words when one cannot be
    built; those before it stay, and those that were built beside it."""
    folder = folder or built_dir()
    folder.mkdir(parents=True, exist_ok=True)
    took_s: dict[str, float] = {}
    if not all(is_built(component, folder) for component in components):
        with _alone(folder, say):
            missing = dict.fromkeys(component for component in components if not is_built(component, folder))
            for batch in _batches(missing):
                took_s |= dict.fromkeys((component.name for component in batch), _build(batch, folder, say))
    programs = [(component.name, folder / component.name) for component in components]
    return [Built(name, program, _size_mb(program), took_s.get(name, 0.0)) for name, program in programs]


def _batches(components: Iterable[Component]) -> list[list[Component]]:
    """Which are built by one ``go build``: those of one module with the same flags. A linker keeps one core busy, and
    what is left to compile the others."""
    batches: dict[object, list[Component]] = {}
    for component in components:
        flags = (component.ldflags, component.tags, component.cgo, component.toolchain)
        batches.setdefault((component.folder, *flags, *_own_name(component)), []).append(component)
    return list(batches.values())


def _own_name(component: Component) -> tuple[str, ...]:
    """Empty where Go itself calls the program as its package's folder, as it does but for a version or a clash."""
    return () if component.package.rpartition("/")[2] == component.name else (component.name,)


def is_built(component: Component, folder: Path | None = None) -> bool:
    """Whether the program is there, as its pins and flags are now, and as it was when it was built: who cleared a disk
    or copied a cache half left one that no command would make anew."""
    folder = folder or built_dir()
    program = folder / component.name
    if not program.is_file() or (told := noted(program)).get("recipe") != recipe(component):
        return False
    if "size" in told:
        return not cut_short(program)
    return bool(component.version_args) or written_version(program, component.source) is not None


def recipe(component: Component) -> str:
    """What a program is built from, in one word: it is built again when this changes."""
    try:
        pinned = [(component.folder / name).read_bytes() for name in ("go.mod", "go.sum")]
    except FileNotFoundError as error:
        where = Where(str(error.filename))
        raise BadInput("there is no such file", where=where, hint="`go mod tidy` in that folder writes it") from None
    how = [component.package, component.ldflags, *component.tags, platform.system(), platform.machine()]
    how += [component.toolchain] if component.toolchain else []
    return hashlib.sha256(b"\0".join([*pinned, *(part.encode() for part in how)])).hexdigest()


def _build(batch: Sequence[Component], folder: Path, say: Say) -> float:
    """How long it took, in seconds."""
    first, names = batch[0], ", ".join(component.name for component in batch)
    go = shutil.which("go")
    if go is None:
        raise TargetError(
            f"{names} is built from Go modules, and there is no `go` on PATH",
            hint="install Go >= 1.26 (https://go.dev/dl), or point --bin-dir at a folder that has the programs",
        )
    packages = [component.package for component in batch]
    say(f"{names}: building {' '.join(packages)}")
    started = time.monotonic()
    made_from = [recipe(component) for component in batch]
    parts = folder / f".{first.name}.parts"
    shutil.rmtree(parts, ignore_errors=True)  # of a build that was killed
    parts.mkdir()
    argv = [go, "build", "-v", "-mod=readonly", "-buildvcs=false", "-trimpath", NO_DWARF, "-ldflags", first.ldflags]
    argv += ["-tags", ",".join(first.tags)] if first.tags else []
    argv += ["-o", str(parts / first.name) if len(batch) == 1 else f"{parts}{os.sep}", *packages]
    try:
        failed = _said_by_go(batch, argv, say)
        took_s = time.monotonic() - started
        for component, pins in zip(batch, made_from, strict=True):
            if (parts / component.name).is_file():
                _put_in_place(parts / component.name, folder / component.name, pins, took_s)
                say(f"{component.name}: {_size_mb(folder / component.name):.0f} MB after {took_s:.0f} s")
            elif failed is None:
                failed = TargetError(
                    f"Go built no program {component.name} and said nothing",
                    hint=f"{component.package} has to be a main package of {component.folder}, and `go` Go's own",
                )
    finally:  # on a full disk, too: what is in there may be gigabytes
        shutil.rmtree(parts, ignore_errors=True)
    if failed:
        raise failed
    return took_s


def _said_by_go(batch: Sequence[Component], argv: Sequence[str], say: Say) -> TargetError | None:
    """Kept for later: what was built beside it is put in place first."""
    try:
        _run_go(batch, argv, say)
    except TargetError as said:
        return said
    return None


def _put_in_place(part: Path, program: Path, made_from: str, took_s: float) -> None:
    part.rename(program)
    note = {"recipe": made_from, "took_s": round(took_s, 1), "size": program.stat().st_size}
    program.with_name(f"{program.name}.json").write_text(json.dumps(note) + "\n")


def _run_go(batch: Sequence[Component], argv: Sequence[str], say: Say) -> None:
    """Counts compiled packages as progress, and passes on whatever else Go says."""
    component, names = batch[0], ", ".join(component.name for component in batch)
    words: list[str] = []
    compiled, told = 0, time.monotonic()
    started = told
    env = {**os.environ, "CGO_ENABLED": "1" if component.cgo else "0"}
    env |= {"GOTOOLCHAIN": component.toolchain} if component.toolchain else {}
    with subprocess.Popen(
        argv,
        cwd=component.folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as go:
        assert go.stderr is not None
        try:
            for line in go.stderr:
                if _COMPILED_PACKAGE.match(line):
                    compiled += 1
                else:
                    words.append(line.rstrip())
                now = time.monotonic()
                if now - told >= PROGRESS_S:
                    told = now
                    latest = line.strip() if compiled else words[-1]
                    say(f"{names}: {compiled} packages compiled, {now - started:.0f} s ({latest})")
        except BaseException:
            go.send_signal(signal.SIGINT)  # which ends its compilers and removes its gigabytes; SIGTERM leaves both
            raise
    if go.returncode != 0:
        again = f"in {component.folder}: {' '.join(argv[:4])} … {' '.join(each.package for each in batch)}"
        headers = dict.fromkeys(found[1] for word in words if (found := _NO_HEADERS.search(word)))
        if headers:
            packages = ", ".join(f"{each}-dev" for each in headers)
            again = f"install the headers of {', '.join(headers)} (Debian: {packages}); {again}"
        raise TargetError(
            "\n    ".join([f"Go could not build {names} (exit code {go.returncode}):", *words[-30:]]), hint=again
        )


def _size_mb(path: Path) -> float:
    return path.stat().st_size / 1e6


@contextlib.contextmanager
def _alone(folder: Path, say: Say) -> Iterator[None]:
    """One build at a time; the lock goes with the process that holds it."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
