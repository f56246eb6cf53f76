"""What a person sees while a run goes on: one calm live view on a terminal, one line per change without one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Protocol, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from harness.printable import line

ALARM = "bold white on red"
BAR = 100
ALARM_LONGEST = 100_000
"""Characters of one of its lines: a command is of no use when it was cut."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of a run. None: not known (yet)."""

    scenario_s: float | None = None
    scenario_s_end: float | None = None
    phase: str = ""
    offered_per_s: float | None = None
    served_per_s: float | None = None
    ttft_ms: float | None = None
    requests_sent: int = 0
    requests_not_ok: int = 0
    replicas: str = ""
    nodes: str = ""
    gangs: str = ""
    waiting: float | None = None


class View(Protocol):
    def say(self, text: str) -> None:
        """A change worth a line of its own: a stage of the run, a step in a fault's life."""
        ...

    def alarm(self, title: str, lines: Sequence[str]) -> None:
        """The loudest thing on the screen: something of ours is left in the cluster. ``lines`` are shown whole: a
        command that was cut heals nothing."""
        ...

    def show(self, snapshot: Snapshot) -> None: ...

    def __enter__(self) -> View: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class PlainView:
    """One line per change, for logs and CI. Rates change all the time, so they are printed only with other news."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._last = Snapshot()

    def say(self, text: str) -> None:
        self._print(line(text))

    def alarm(self, title: str, lines: Sequence[str]) -> None:
        self._out.write("".join(f"{text}\n" for text in alarm_lines(title, lines)))
        self._out.flush()

    def show(self, snapshot: Snapshot) -> None:
        news = [
            f"{f.name} {getattr(snapshot, f.name)}"
            for f in fields(Snapshot)
            if f.name in ("phase", "replicas", "nodes", "gangs")
            and getattr(snapshot, f.name) != getattr(self._last, f.name)
        ]
        self._last = snapshot
        if news:
            self._print(f"{'; '.join(news)}   ({_load_text(snapshot)})")

    def _print(self, text: str) -> None:
        at = self._last.scenario_s
        self._out.write(f"{'        ' if at is None else f'{at:6.0f} s'}  {text}\n")
        self._out.flush()

    def __enter__(self) -> PlainView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class LiveView:
    """A small panel that is redrawn in place; what is said scrolls away above it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._last = Snapshot()

    def say(self, text: str) -> None:
        at = self._last.scenario_s
        stamp = "        " if at is None else f"{at:6.0f} s"
        self._console.print(Text(f"{stamp}  {line(text)}"))

    def alarm(self, title: str, lines: Sequence[str]) -> None:
        self._console.print(Text("\n".join(alarm_lines(title, lines)), style=ALARM))

    def show(self, snapshot: Snapshot) -> None:
        self._last = snapshot
        self._live.update(Group(_panel(snapshot)))

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()


def alarm_lines(title: str, lines: Sequence[str]) -> list[str]:
    """Between two bars, so that nobody scrolls past it where there is no colour."""
    bar = "!" * BAR
    return [bar, f"!!! {line(title)}", *(f"!!!   {line(text, ALARM_LONGEST)}" for text in lines), bar]


def make_view(plain: bool) -> View:
    console = Console()
    return PlainView() if plain or not console.is_terminal else LiveView(console)


def _load_text(s: Snapshot) -> str:
    ttft = "-" if s.ttft_ms is None else f"{s.ttft_ms:.0f} ms"
    offered = "-" if s.offered_per_s is None else f"{s.offered_per_s:.1f}/s"
    served = "-" if s.served_per_s is None else f"{s.served_per_s:.1f}/s"
    return f"offered {offered}, served {served}, TTFT {ttft}, not ok {s.requests_not_ok} of {s.requests_sent}"


def _panel(s: Snapshot) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", min_width=10)
    table.add_column()
    when = "" if s.scenario_s is None else f"{s.scenario_s:.0f} s of {s.scenario_s_end or 0:.0f} s (scenario)"
    table.add_row("phase", f"{s.phase or '-'}   {when}")
    table.add_row("load", _load_text(s))
    table.add_row("replicas", s.replicas or "-")
    table.add_row("nodes", s.nodes or "-")
    if s.gangs:
        table.add_row("gangs", s.gangs)
    table.add_row("waiting", "-" if s.waiting is None else f"{s.waiting:.0f} requests")
    return table
