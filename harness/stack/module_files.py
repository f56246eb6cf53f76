"""Files of a Go module that a run needs beside its programs: kinds, webhooks, templates.

Kept in the user's cache, so that only building needs Go.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness.errors import TargetError
from harness.stack.cache import cache_dir
from harness.stack.description import Described

NOTE = ".taken-from"


def kept_dir(described: Described, cache: Path | None = None) -> Path:
    return (cache or cache_dir()) / "objects" / described.name


def take(described: Described, cache: Path | None = None) -> Path:
    """Copies what the description names out of the module, unless that was done for the same version and names."""
    place = kept_dir(described, cache)
    if is_taken(described, cache):
        return place
    root = _module_folder(described)
    part = place.with_name(f".{place.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    taken: list[str] = []
    for file in _matches(root, described.from_module, described.addon.source):
        copy = part / file.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())  # the module cache is read-only, the copy is not
        taken.append(f"{copy.stat().st_size} {file.relative_to(root)}\n")
    (part / NOTE).write_text("".join([_recipe(described), *taken]))
    shutil.rmtree(place, ignore_errors=True)
    part.rename(place)
    return place


def is_taken(described: Described, cache: Path | None = None) -> bool:
    """Whether the files are there, as the description names them now, and as they were when they were taken: who
    cleared a disk left some that no command would take anew."""
    place = kept_dir(described, cache)
    try:
        recipe, *taken = (place / NOTE).read_text(errors="replace").splitlines(keepends=True)
    except (OSError, ValueError):
        return False
    return recipe == _recipe(described) and all(_is_there(place, *line.strip().split(" ", 1)) for line in taken)


def _is_there(place: Path, size: str, name: str = "") -> bool:
    file = place / name
    return file.is_file() and str(file.stat().st_size) == size


def files_of(described: Described, globs: Sequence[str], cache: Path | None = None) -> list[Path]:
    """What was taken, in the order of the globs and of their names."""
    return list(_matches(kept_dir(described, cache), globs, described.addon.source))


def _matches(root: Path, globs: Sequence[str], source: str) -> list[Path]:
    found: dict[Path, None] = {}
    for glob in globs:
        matching = sorted(path for path in root.glob(glob) if path.is_file() and not path.name.startswith("kustomiz"))
        if not matching:
            raise TargetError(f"{source} has no file {glob}", hint=f"looked in {root}")
        found |= dict.fromkeys(matching)
    return list(found)


def _recipe(described: Described) -> str:
    words = "\n".join([described.addon.source, described.version, *described.from_module])
    return hashlib.sha256(words.encode()).hexdigest() + "\n"


def _module_folder(described: Described) -> Path:
    """Where Go keeps the module: its build has put it there, so nothing is asked of the network."""
    source, toolchain = described.addon.source, described.addon.toolchain
    env = {**os.environ} | ({"GOTOOLCHAIN": toolchain} if toolchain else {})

    def go(*words: str) -> subprocess.CompletedProcess[str]:
        argv, nothing = ["go", *words], subprocess.DEVNULL
        return subprocess.run(argv, cwd=described.folder, env=env, capture_output=True, text=True, stdin=nothing)

    try:
        modules = Path(go("env", "GOMODCACHE").stdout.strip())
        # In paths Go writes an upper-case letter as "!" and the lower-case one (golang.org/x/mod/module, EscapePath).
        escaped = re.sub(r"[A-Z]", lambda letter: "!" + letter[0].lower(), f"{source}@v{described.version}")
        said = "" if (modules / escaped).is_dir() else go("mod", "download", source).stderr
    except FileNotFoundError:
        raise TargetError(f"the files of {source} come from Go modules, and there is no `go` on PATH") from None
    if not (modules / escaped).is_dir():
        raise TargetError(f"Go did not bring {source} v{described.version}: {said.strip() or 'it does not say why'}")
    return modules / escaped
