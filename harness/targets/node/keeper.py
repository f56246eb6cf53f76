"""Removes what machines leave behind, when all who could have done so are gone.

``python -m harness.targets.node.keeper --cgroup PREFIX --folder FOLDER`` waits for SIGTERM or for its parent's end. The
kernel ends the processes of machines, their mounts and networks with their first processes; it keeps cgroups and files.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

from harness.processes.parent import watch_parent
from harness.targets.node import cgroups

REMOVE_WITHIN_S = 60.0


def clean(prefix: str, folder: Path) -> list[Path]:
    """Returns what is still there; empty, as a rule. Idempotent."""
    try:
        left = cgroups.remove(prefix)
    finally:
        gone = _remove(folder)
    return left if gone else [*left, folder]


def _remove(folder: Path) -> bool:
    deadline_s = time.monotonic() + REMOVE_WITHIN_S
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)  # the last mounts may just be going
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.05)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m harness.targets.node.keeper")
    parser.add_argument("--cgroup", required=True, help="how the names of the machines' cgroups begin")
    parser.add_argument("--folder", type=Path, required=True)
    args = parser.parse_args()
    due = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: due.set())
    watch_parent(due.set)
    due.wait()
    left = clean(args.cgroup, args.folder)
    for path in left:
        print(f"could not be removed: {path}", file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
