"""A layer of an image: files of this machine, with the libraries they need, at places of our choosing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

FOLDERS = ("bin", "dev", "etc", "lib64", "proc", "root", "run", "sys", "tmp", "usr", "usr/local", "var")
_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


class NoSuchProgram(Exception):
    """A program that an image is to have is not on this machine."""


def stage_base(root: Path, programs: Iterable[str]) -> None:
    """The folders that every container expects, two files about users, and ``programs`` found on PATH."""
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    for name in programs:
        found = shutil.which(name)
        if found is None:
            raise NoSuchProgram(f"there is no program {name} on PATH")
        stage(root, Path(found).resolve(), Path("bin") / name)
        stage_libraries(root, [Path(found)])


def stage(root: Path, source: Path, place: Path) -> None:
    target = root / place
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def stage_libraries(root: Path, binaries: Iterable[Path], but_below: Path | None = None) -> None:
    """What ``binaries`` are linked with, at the same paths, but for what is staged there already and what lies below a
    folder whose libraries are staged elsewhere."""
    for library in sorted({path for binary in binaries for path in _libraries(binary)}):
        place = Path(library).relative_to("/")
        if but_below is not None and Path(library).is_relative_to(but_below):
            continue
        if not (root / place).exists():
            stage(root, Path(library).resolve(), place)


def write_layer(path: Path, root: Path) -> None:
    """All of ``root``, owned by root, without times."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = 0
        entry.mode = 0o1777 if entry.name == "tmp" else (entry.mode & 0o777) | 0o444
        return entry

    part = path.with_name(f".{path.name}.part")
    with tarfile.open(part, "w") as layer:
        for file in sorted(root.rglob("*")):
            layer.add(file, arcname=str(file.relative_to(root)), recursive=False, filter=plain)
    part.rename(path)


def _libraries(binary: Path) -> list[str]:
    """Of ``ldd``; none for a static one."""
    said = subprocess.run(["ldd", os.fspath(binary)], capture_output=True, text=True, check=False)
    return _LIBRARY.findall(said.stdout)
