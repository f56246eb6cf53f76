"""Experiments on real components as processes, some at a time, and what each came to."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from declared import ROOT, Expected

from harness.errors import ExitCode

LONGER = 4
"""Times as long as others may one take that is declared to be long."""
_FOLDER = re.compile(r"^seed .*, folder (/.+)$", re.MULTILINE)
BROUGHT_DOWN_S = 90.0
"""Of the clock, in which a run that was told to end takes its cluster down."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How one experiment ended. ``why_again``: why nothing can be said of it; empty where something can."""

    right: bool
    text: str
    why_again: str = ""
    status: str = "no verdict"
    sentence: str = ""
    """Of the check that is declared."""
    folder: Path | None = None


class Plays:
    """Runs as processes, in lanes. Whatever ends this one ends them, and waits for them to take their clusters down."""

    def __init__(self, reports: Path, begin_within_s: float, limit_s: float) -> None:
        self._reports = reports
        self._last_begin_s = time.monotonic() + begin_within_s
        self._limit_s = limit_s
        self._running: set[subprocess.Popen[str]] = set()
        self._mutex = threading.Lock()
        self._ended = False

    def each(self, chosen: Sequence[Expected], lanes: int) -> Iterator[tuple[Expected, Ended | None, float]]:
        """As they end, with the seconds each took; None for one that there was no time to begin."""
        pool = ThreadPoolExecutor(lanes)
        played: dict[Future[tuple[Ended | None, float]], Expected] = {pool.submit(self._play, e): e for e in chosen}
        try:
            for done in as_completed(played):
                yield played[done], *done.result()
        finally:
            with self._mutex:
                self._ended = True
                for process in self._running:
                    process.terminate()
            pool.shutdown(cancel_futures=True)
            self._ended = False

    def _play(self, expected: Expected) -> tuple[Ended | None, float]:
        began_s = time.monotonic()
        if began_s > self._last_begin_s:
            return None, 0.0
        command = [sys.executable, "-m", "harness.cli", "run", str(expected.file), "--target", "controlplane"]
        command += ["--plain", "--seed", "1", "--reports", str(self._reports)]
        with self._mutex:
            if self._ended:
                return None, 0.0
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            self._running.add(process)
        said = self._said(process, self._limit_s * (LONGER if expected.long else 1))
        with self._mutex:
            self._running.discard(process)
        return judged(expected, folder_in(said), process.returncode, said), time.monotonic() - began_s

    def _said(self, process: subprocess.Popen[str], limit_s: float) -> str:
        """All that it printed. One that does not end is told to, and killed when it does not do that either."""
        for patience_s, more in ((limit_s, process.terminate), (BROUGHT_DOWN_S, process.kill)):
            try:
                return process.communicate(timeout=patience_s)[0]
            except subprocess.TimeoutExpired:
                more()
        return process.communicate()[0]


def folder_in(said: str) -> Path | None:
    """Of the run, as it names it itself: others may write theirs beside it."""
    found = _FOLDER.search(said)
    return Path(found[1]) if found else None


def judged(expected: Expected, folder: Path | None, code: int, words: str) -> Ended:
    """By the verdict in ``folder``, which this run made. That nothing can be said is no answer to what is declared."""
    file = folder / "verdict.json" if folder else None
    if file is None or not file.is_file():
        text = f"no verdict, exit {code}\n{words[-1500:]}"
        return Ended(False, text, "" if code == ExitCode.BAD_INPUT else f"no verdict, exit {code}")
    verdict = json.loads(file.read_text())
    said = {finding["check"]: finding for finding in verdict["findings"]}
    own = said.get(expected.check)
    if own is None:
        return Ended(False, f"{verdict['status']}, and the check {expected.check} was not asked", folder=folder)
    status, sentence = verdict["status"], own["sentence"]
    text = f"{status}: {sentence}"
    if status == own["judged"] == expected.verdict and expected.words in sentence:
        return Ended(True, text, "", status, sentence, folder)
    also = expected.also
    if also is not None and status == own["judged"] == also.verdict and also.words in sentence:
        return Ended(True, f"{text} (declared, too: {also.why})", "", status, sentence, folder)
    why = [f"{name} {f['judged']}" for name, f in said.items() if f["judged"] != "pass" and name != expected.check]
    text += f" ({expected.verdict} with {expected.words!r} was declared; {', '.join(why) or 'all else passed'})"
    unproven = [f"{f['sentence']}" for f in said.values() if f["role"] == "validity" and f["judged"] != "pass"]
    why_again = "; ".join(unproven) or verdict["sentence"] if status == "unknown" else ""
    return Ended(False, text, why_again, status, sentence, folder)
