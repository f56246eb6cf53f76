"""What the machines of a run could leave behind: processes, namespaces, mounts, links, cgroups and files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from harness.targets.node.cgroups import PREFIX, ROOT

_PROC = Path("/proc")


def things(folder: Path) -> set[str]:
    """By what they are and their name. ``folder`` is the run's; that of its logs may stay."""
    found = {f"interface {path.name}" for path in Path("/sys/class/net").iterdir()}
    found |= {f"mount {line}" for line in _mounts() if str(folder) in line}
    found |= {f"file {path}" for path in folder.glob("*") if path.name != "logs"}
    found |= {f"file {path}" for path in Path("/var/lib").iterdir()}
    found |= {f"file {path}" for name in ("containers", "pods") for path in Path("/var/log", name).glob("*")}
    found |= {f"cgroup {path}" for pattern in (f"{PREFIX}*", f"*/{PREFIX}*") for path in ROOT.glob(pattern)}
    found |= {f"process {pid} {words[:120]}" for pid, words in _processes() if str(folder) in words}
    return found


def namespaces_of(folder: Path) -> set[str]:
    """All of the processes that have ``folder`` in their words: the first process of each machine has, and the one that
    holds their network."""
    ours = set(_namespaces(os.getpid()))
    return {name for pid, words in _processes() if str(folder) in words for name in _namespaces(pid)} - ours


def still_there(namespaces: set[str]) -> set[str]:
    """Those that a process lives in, or a mount holds."""
    found = {
        f"namespace {name} of process {pid} {words[:120]}"
        for pid, words in _processes()
        for name in namespaces.intersection(_namespaces(pid))
    }
    return found | {f"mount {line}" for line in _mounts() for name in namespaces if name in line}


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
