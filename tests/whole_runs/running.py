"""Starts the real command in a process of its own, and looks at what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "harness.cli")
LONGEST_RUN_S = 240
"""Far beyond any run; only so that a hang ends in a failed test."""


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    out: str
    folder: Path | None

    @property
    def verdict(self) -> dict[str, Any]:
        assert self.folder is not None, self.out
        return json.loads((self.folder / "verdict.json").read_text())

    def finding(self, check: str) -> dict[str, Any]:
        return next(f for f in self.verdict["findings"] if f["check"] == check)


def start(*args: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *args],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], reports: Path | None = None) -> Ended:
    try:
        out, _ = process.communicate(timeout=LONGEST_RUN_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
        raise AssertionError(f"the command hung; it had said:\n{out}") from None
    return Ended(process.returncode, out, newest_run(reports) if reports else None)


def command(*args: str, cwd: Path = ROOT, reports: Path | None = None) -> Ended:
    return finish(start(*args, cwd=cwd), reports)


def newest_run(reports: Path) -> Path | None:
    runs = sorted(reports.glob("*/*/"), key=lambda p: p.stat().st_mtime_ns)
    return runs[-1] if runs else None


def processes_naming(text: str) -> list[str]:
    """Command lines of living processes that mention ``text`` or work in it (a run's folder is in the arguments,
    environment or working directory of every child of that run)."""
    found = []
    for proc in Path("/proc").glob("[0-9]*"):
        try:
            argv = (proc / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            environ = (proc / "environ").read_bytes().decode(errors="replace")
            environ += os.readlink(proc / "cwd")
            zombie = (proc / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if not zombie and int(proc.name) != os.getpid() and (text in argv or text in environ):
            found.append(f"{proc.name}: {argv}")
    return found
