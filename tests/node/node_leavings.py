"""What the machines of a run could leave behind: processes, namespaces, mounts, links, cgroups and files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from harness.targets.node.cgroups import PREFIX, ROOT

_PROC = Path("/proc")
_OURS = re.compile(PREFIX + r"[0-9a-f]{8}(-|$)")
"""Others of the harness have names that begin alike."""


def things(folder: Path) -> set[str]:
    """By what they are and their name. ``folder`` is the run's; that of its logs may stay."""
    found = {f"interface {path.name}" for path in Path("/sys/class/net").iterdir()}
    found |= {f"mount {line}" for line in _mounts() if str(folder) in line}
    found |= {f"file {path}" for path in folder.glob("*") if path.name != "logs"}
    found |= {f"file {path}" for path in Path("/var/lib").iterdir()}
    found |= {f"file {path}" for name in ("containers", "pods") for path in Path("/var/log", name).glob("*")}
    cgroups = {path for pattern in (f"{PREFIX}*", f"*/{PREFIX}*") for path in ROOT.glob(pattern)}
    found |= {f"cgroup {path}" for path in cgroups if _OURS.match(path.name)}
    found |= {f"process {pid} {words[:120]}" for pid, words in _processes() if str(folder) in words}
    return found


def inhabitants(folder: Path) -> set[str]:
    """All processes in the namespaces of a run: those of its processes that have ``folder`` in their words, as the
    first process of each machine has, and the one that holds their network. A pid alone would not do, for they are
    given out again; nor would the number of a namespace."""
    everybody = list(_processes())
    known = {name for pid, words in everybody if str(folder) in words for name in _namespaces(pid)}
    theirs = known - set(_namespaces(os.getpid()))
    return {_who(pid, words) for pid, words in everybody if theirs.intersection(_namespaces(pid))}


def still_there(processes: set[str]) -> set[str]:
    return processes & {_who(pid, words) for pid, words in _processes()}


def _who(pid: int, words: str) -> str:
    try:
        began = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        began = "gone"
    return f"process {pid} of {began} in a namespace of the run: {words[:120]}"


def _processes() -> Iterator[tuple[int, str]]:
    """But our own."""
    for process in _PROC.glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if int(process.name) != os.getpid():
            yield int(process.name), words


def _namespaces(pid: int) -> Iterator[str]:
    """As ``net:[4026532281]``."""
    try:
        for link in (_PROC / str(pid) / "ns").iterdir():
            yield os.readlink(link)
    except OSError:
        return


def _mounts() -> list[str]:
    return Path("/proc/self/mountinfo").read_text().splitlines()
