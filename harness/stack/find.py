"""Finds real programs of the right version: ``--bin-dir``, KUBEBUILDER_ASSETS, PATH, then what we built ourselves."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BadInput, TargetError, Where
from harness.stack.cache import built_dir, cut_short
from harness.stack.component import Component

ASSETS_ENV = "KUBEBUILDER_ASSETS"
_ASK_TIMEOUT_S = 30
_VERSION = re.compile(r"\bv?(\d+\.\d+\.\d+)")


@dataclass(frozen=True, slots=True)
class Binary:
    name: str
    path: Path
    version: str


@dataclass(frozen=True, slots=True)
class Binaries:
    """Programs that were found, each of a version that the harness is written for."""

    found: Mapping[str, Binary]

    def path(self, component: Component) -> str:
        return str(self.found[component.name].path)

    def versions(self) -> dict[str, str]:
        return {name: binary.version for name, binary in self.found.items()}


def find_binaries(
    components: Sequence[Component], bin_dir: Path | None = None, env: Mapping[str, str] = os.environ
) -> Binaries:
    """All of ``components``, or one error that names every one that is missing and says how to get them.

    A program of another version is passed over and named in that error, except in ``bin_dir``: who names a folder means
    what lies there.
    """
    if bin_dir is not None and not bin_dir.is_dir():
        raise BadInput("there is no such folder", where=Where(f"--bin-dir {bin_dir}"), hint=_HOW_TO_GET_THEM)
    found: dict[str, Binary] = {}
    missing: list[str] = []
    for component in components:
        passed_over: list[str] = []
        for place, path in _candidates(component.name, bin_dir, env):
            if place == "cache" and (wrong := cut_short(path)):
                passed_over.append(f"{path} {wrong}")
                continue
            version = version_of(path, component)
            if version is not None and component.takes(version):
                found[component.name] = Binary(component.name, path, version)
                break
            seen = f"{path} is version {version}" if version else f"{path} does not say its version"
            if place == "--bin-dir":
                raise BadInput(f"{seen}, needed is {_needed(component)}", where=Where("--bin-dir"))
            passed_over.append(seen)
        if component.name not in found:
            missing.append("; ".join([f"{component.name} {_needed(component)}", *passed_over]))
    if missing:
        raise TargetError("\n    ".join(["these programs are missing:", *missing]), hint=_HOW_TO_GET_THEM)
    return Binaries(found)


_HOW_TO_GET_THEM = (
    "`make controlplane` builds them from Go modules, once (Go >= 1.26; some minutes on 2 cores), "
    f"or point --bin-dir or {ASSETS_ENV} at a folder that has them"
)


def version_of(path: Path, component: Component) -> str | None:
    if component.version_args:
        return ask_version(path, component.version_args)
    return written_version(path, component.source)


def written_version(path: Path, source: str) -> str | None:
    """The version of a module that a Go program was built with: Go writes the list of them into it, as text."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            found = re.search(rb"\n(?:mod|dep)\t" + re.escape(source).encode() + rb"\tv([^\t\n]+)", content)
            return found.group(1).decode() if found else None
    except (OSError, ValueError):
        return None


def ask_version(path: Path, args: Sequence[str]) -> str | None:
    """What the program itself says; None when it says nothing that looks like a version."""
    try:
        said = subprocess.run(
            [path, *args], capture_output=True, text=True, timeout=_ASK_TIMEOUT_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if said.returncode != 0:
        return None
    match = _VERSION.search(said.stdout) or _VERSION.search(said.stderr)  # CNI plugins keep stdout for their answers
    return match.group(1) if match else None


def _candidates(name: str, bin_dir: Path | None, env: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    places = [("--bin-dir", str(bin_dir) if bin_dir else ""), (ASSETS_ENV, env.get(ASSETS_ENV, ""))]
    places += [("PATH", env.get("PATH", "")), ("cache", str(built_dir(env)))]
    for place, folders in places:
        if folders and (path := shutil.which(name, path=folders)):
            yield place, Path(path).absolute()


def _needed(component: Component) -> str:
    return " or ".join(component.releases)
