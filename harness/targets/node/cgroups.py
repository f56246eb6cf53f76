"""The cgroups of machines: made for a kubelet, frozen and thawed, and removed with whatever is left in them.

Both versions: in the first each controller has a hierarchy of its own, in the second there is one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PREFIX = "gpu-harness-"
_REMOVE_WITHIN_S = 30.0


def hierarchies(root: Path = ROOT) -> list[Path]:
    """All in which a kubelet makes cgroups: one where the version is the second."""
    if (root / "cgroup.controllers").exists():
        return [root]
    return sorted(
        p for p in root.iterdir() if (p / "cgroup.procs").exists() and p.name != "unified" and not p.is_symlink()
    )


def make(name: str, root: Path = ROOT) -> None:
    """Empty ones. CPUs and memory nodes of a new cpuset are none at first, in the first version."""
    for hierarchy in hierarchies(root):
        (hierarchy / name).mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):
            if hierarchy != root and (hierarchy / file).exists():
                (hierarchy / name / file).write_text((hierarchy / file).read_text())


def take_in(name: str, pid: int, root: Path = ROOT) -> None:
    """So that a freeze reaches the process and all that it starts. Only where it must: a kubelet counts the memory of
    pods, not its own."""
    if (root / "cgroup.controllers").exists():
        inner = root / name / "machine"  # no process beside cgroups that have controllers, in the second version
        inner.mkdir(exist_ok=True)
        (inner / "cgroup.procs").write_text(str(pid))
    elif (root / "freezer").exists():
        (root / "freezer" / name / "cgroup.procs").write_text(str(pid))


def freeze(name: str, frozen: bool, root: Path = ROOT) -> None:
    if (root / "cgroup.controllers").exists():
        (root / name / "cgroup.freeze").write_text(str(int(frozen)))
    else:
        (root / "freezer" / name / "freezer.state").write_text("FROZEN" if frozen else "THAWED")


def remove(prefix: str, root: Path = ROOT) -> list[Path]:
    """All whose name begins so, and every process in them. Returns what could not be removed."""
    deadline_s = time.monotonic() + _REMOVE_WITHIN_S
    while left := list(_named(prefix, root)):
        for top in left:
            _kill_in(top)
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):  # not empty yet
                    os.rmdir(folder)
        if time.monotonic() > deadline_s:
            return left
        time.sleep(0.05)
    return []


def _named(prefix: str, root: Path) -> Iterator[Path]:
    """Also beside the hierarchies that we make them in: a kubelet makes some in whatever else there is."""
    for hierarchy in (root, *(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())):
        yield from (path for path in hierarchy.iterdir() if path.name.startswith(prefix) and path.is_dir())


def _kill_in(top: Path) -> None:
    """A frozen process dies when it thaws."""
    for file, text in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
        with contextlib.suppress(OSError):
            if (top / file).exists():
                (top / file).write_text(text)
    for folder, _, _ in os.walk(top):  # unlike ``rglob`` it bears that somebody else removes them meanwhile
        with contextlib.suppress(OSError):
            for pid in Path(folder, "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
