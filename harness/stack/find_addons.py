"""Finds the programs and files of addons: in ``--bin-dir`` and in what was built. Nowhere else: a controller on PATH is
somebody's own, of a version that our descriptions need not fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.errors import BadInput, TargetError, Where
from harness.stack.cache import built_dir, cut_short
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
    """A program, or what is wrong with the one in the cache. BadInput for one in ``bin_dir`` that does not fit: who
    names a folder means what lies there."""
    built = cache / "bin" if cache else built_dir()
    for folder in filter(None, (bin_dir, built)):
        path = (folder / name).absolute()
        if not path.is_file():
            continue
        version = written_version(path, described.addon.source)
        wrong = "" if version == described.version else _other(version)
        if folder is bin_dir and wrong:
            raise BadInput(f"{path} {wrong}, needed is {described.version}", where=Where("--bin-dir"))
        if folder is built:
            wrong = cut_short(path) or wrong
        return (None, f" ({path} {wrong})") if wrong else (Binary(name, path, described.version), "")
    return None, ""


def _other(version: str | None) -> str:
    return f"is version {version}" if version else "is no Go program of that module"
