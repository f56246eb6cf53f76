"""Finds the programs and files of addons: in ``--bin-dir`` and in what was built. Nowhere else: a controller on PATH is
somebody's own, of a version that our descriptions need not fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.errors import TargetError
from harness.stack.cache import built_dir
from harness.stack.description import Described
from harness.stack.find import Binaries, Binary, written_version
from harness.stack.module_files import is_taken


def find_addons(addons: Sequence[Described], bin_dir: Path | None = None, cache: Path | None = None) -> Binaries:
    """All programs of ``addons``, or one TargetError that names every one that is missing and the command that builds
    them."""
    found: dict[str, Binary] = {}
    missing: list[str] = []
    incomplete: dict[str, None] = {}
    for described in addons:
        for component in described.components:
            binary, seen = _look(component.name, described, bin_dir, cache)
            if binary is not None:
                found[component.name] = binary
            else:
                incomplete[described.name] = None
                missing.append(f"{component.name} {described.version}{seen}")
        if described.from_module and not is_taken(described, cache):
            incomplete[described.name] = None
            missing.append(f"the kinds and files of {described.addon.source} {described.version}")
    if missing:
        raise TargetError(
            "\n    ".join([f"not built: {', '.join(incomplete)}. These are missing:", *missing]),
            hint=f"gpu-harness stack build {' '.join(incomplete)} (once; needs Go >= 1.26)",
        )
    return Binaries(found)


def _look(name: str, described: Described, bin_dir: Path | None, cache: Path | None) -> tuple[Binary | None, str]:
    places = [folder for folder in (bin_dir, cache / "bin" if cache else built_dir()) if folder is not None]
    seen = ""
    for folder in places:
        path = (folder / name).absolute()
        if not path.is_file():
            continue
        version = written_version(path, described.addon.source)
        if version == described.version:
            return Binary(name, path, version), ""
        seen = f" ({path} is {f'version {version}' if version else 'no Go program of that module'})"
    return None, seen
