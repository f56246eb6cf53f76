"""What the harness knows of a real program before it starts it: its source, its version, how one asks for it."""

from __future__ import annotations

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
    ldflags: str = "-s -w"
    tags: tuple[str, ...] = ()
    """Build tags, as ``go build -tags`` takes them."""
    cgo: bool = False
    """Whether a C compiler takes part. All others are static, and built without one."""

    @property
    def folder(self) -> Path:
        return MODULES / self.module

    def takes(self, version: str) -> bool:
        return any(version == release or version.startswith(release + ".") for release in self.releases)
