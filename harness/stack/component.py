"""What the harness knows of a real program before it starts it: its source, its version, how one asks for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).resolve().parents[2] / "controlplane"
"""One folder per Go module, with the go.mod and go.sum that pin everything a build takes."""


@dataclass(frozen=True, slots=True)
class Component:
    """One program. Adding one is adding one of these, and a folder with a go.mod.

    ``module`` is that folder's name; ``package`` the main package, built as the module pins it. ``releases`` are the
    versions the harness is written for, by prefix: "1.37" takes any patch release of it.
    """

    name: str
    module: str
    package: str
    releases: tuple[str, ...]
    version_args: tuple[str, ...] = ("--version",)
    """Without any, the version is the one of ``source`` that Go wrote into the program."""
    ldflags: str = "-s -w"
    tags: tuple[str, ...] = ()
    """Build tags, as ``go build -tags`` takes them."""
    cgo: bool = False
    """Whether a C compiler takes part. All others are static, and built without one."""
    source: str = ""
    """The Go module that the program is of."""
    toolchain: str = ""
    """The Go release that builds it, e.g. "go1.27.3", where its module asks for one; else whichever is installed."""
    modules: Path | None = None
    """Where the folder of ``module`` is, if not among our own."""

    @property
    def folder(self) -> Path:
        return (self.modules or MODULES) / self.module

    def takes(self, version: str) -> bool:
        return any(version == release or version.startswith(release + ".") for release in self.releases)


def pinned_version(folder: Path, source: str) -> str:
    """The version of a Go module that a folder's go.mod pins, without its "v"; empty where it names none."""
    found = re.search(rf"^\s*(?:require )?{re.escape(source)} v(\S+)", (folder / "go.mod").read_text(), re.MULTILINE)
    return found.group(1) if found else ""
