"""The few shell commands that hollow containers understand, run on the event loop.

Enough for the hooks, exec probes and test pods that people write: ``sleep``, ``exit``, ``echo``, ``touch``, ``rm``,
``test``, ``cat``, ``true``, ``false``, ``trap ... TERM``, an endless ``while true; do sleep N; done``, and ``curl`` or
``wget`` of the container's own port. Sleeps are scenario seconds. Anything else is not understood, and says so.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from fakes.timing import Timing

SHELLS = ("sh", "/bin/sh", "bash", "/bin/bash")
NOT_FOUND_CODE = 127
Get = Callable[[str], Awaitable[int | None]]
"""The HTTP status of a GET of a path on the container's own port; None when refused."""

_LOOP = re.compile(r"^while\s+(?:true|:)\s*;\s*do\s+sleep\s+([0-9.]+)\s*;\s*done$")
_URL = re.compile(r"^(?:https?://)?[^/\s]+(/\S*)?$")


class NotUnderstood(Exception):
    """No command that a hollow container knows."""


@dataclass(slots=True)
class Shell:
    """The state of one container that its commands share. ``say`` gets the lines written to stdout."""

    timing: Timing
    get: Get
    say: Callable[[str], None]
    files: dict[str, str] = field(default_factory=dict)

    async def run(self, argv: Sequence[str]) -> int:
        """The exit code. Raises ``NotUnderstood``."""
        return await Run(self, parse(argv)).finish()


@dataclass(frozen=True, slots=True)
class Command:
    words: tuple[str, ...]
    joined_by: str = ";"
    """How it hangs on the one before: ``;``, ``&&`` or ``||``."""
    to_file: str = ""


def parse(argv: Sequence[str]) -> tuple[Command, ...]:
    if len(argv) >= 3 and argv[0] in SHELLS and argv[1] in ("-c", "-ec", "-xc"):
        return tuple(_split(argv[2]))
    return (_command(tuple(argv), ";"),)


def _split(text: str) -> list[Command]:
    found: list[Command] = []
    for joint, part in _parts(text):
        if loop := _LOOP.match(part):
            found.append(Command(("idle", loop[1]), joint))
            continue
        try:
            words = tuple(shlex.split(part))
        except ValueError as error:
            raise NotUnderstood(f"{part!r}: {error}") from error
        if words:
            found.append(_command(words, joint))
    return found


def _parts(text: str) -> list[tuple[str, str]]:
    """At ``;``, ``&&``, ``||`` and line ends outside quotes; an endless loop stays in one piece."""
    parts: list[tuple[str, str]] = []
    joint, quote, begin, at = ";", "", 0, 0
    while at < len(text):
        if not quote and text.startswith("while", at) and (end := text.find("done", at)) > 0:
            at = end + 4
            continue
        char = text[at]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif text[at : at + 2] in ("&&", "||"):
            parts.append((joint, text[begin:at].strip()))
            joint, begin, at = text[at : at + 2], at + 2, at + 1
        elif char in ";\n":
            parts.append((joint, text[begin:at].strip()))
            joint, begin = ";", at + 1
        at += 1
    parts.append((joint, text[begin:].strip()))
    return [(j, p) for j, p in parts if p]


def _command(words: tuple[str, ...], joint: str) -> Command:
    if any(w in ("|", "<", "&") or w.startswith("$(") for w in words):
        raise NotUnderstood(" ".join(words))
    words = tuple(w for w in words if not re.match(r"^[0-9]?>{1,2}/dev/null$|^2>&1$", w))
    target = ""
    for sign in (">", ">>"):
        if sign in words and words.index(sign) == len(words) - 2:
            target, words = words[-1], words[:-2]
    if not words or words[0] not in COMMANDS:
        raise NotUnderstood(words[0] if words else "")
    return Command(words, joint, target)


class Run:
    """One script under way. ``terminate`` is SIGTERM to it as process 1 of a container: without a trap it is ignored,
    and a trap waits for the command in the foreground, as a shell's does."""

    def __init__(self, shell: Shell, commands: Sequence[Command]) -> None:
        self._shell = shell
        self._commands = commands
        self._trap: tuple[Command, ...] | None = None
        self._terminated = asyncio.Event()
        self._exit: int | None = None

    def terminate(self) -> None:
        if self._trap:
            self._terminated.set()

    async def finish(self) -> int:
        return await self._sequence(self._commands)

    async def _sequence(self, commands: Sequence[Command]) -> int:
        code = 0
        for command in commands:
            if (command.joined_by == "&&" and code != 0) or (command.joined_by == "||" and code == 0):
                continue
            code = await self._one(command)
            if self._exit is None and self._terminated.is_set() and self._trap is not None:
                trap, self._trap = self._trap, None
                code = await self._sequence(trap)
            if self._exit is not None:
                return self._exit
        return code

    async def _one(self, command: Command) -> int:
        name, *args = command.words
        shell = self._shell
        match name:
            case "exit":
                self._exit = int(args[0]) if args else 0
                return self._exit
            case "sleep":
                await asyncio.sleep(shell.timing.clock_s(_seconds(args[0])))
            case "idle":
                await self._idle(_seconds(args[0]))
            case "echo":
                line = " ".join(args)
                if command.to_file:
                    shell.files[command.to_file] = line
                else:
                    shell.say(line)
            case "touch":
                shell.files |= {path: shell.files.get(path, "") for path in args}
            case "rm":
                for path in args:
                    shell.files.pop(path, None)
            case "trap":
                self._trap = tuple(_split(args[0])) if args and args[0] else None
            case "cat":
                return 0 if all(path in shell.files for path in args) else 1
            case "test" | "[":
                return 0 if _test(shell, args) else 1
            case "false":
                return 1
            case "curl" | "wget":
                return await self._fetch(args)
        return 0

    async def _idle(self, period_s: float) -> None:
        """A loop that does nothing: only a trap gets it out, at the end of the sleep that it interrupts."""
        loop = asyncio.get_running_loop()
        began_s, period_s = loop.time(), max(self._shell.timing.clock_s(period_s), 0.001)
        await self._terminated.wait()
        await asyncio.sleep(period_s - (loop.time() - began_s) % period_s)

    async def _fetch(self, args: Sequence[str]) -> int:
        paths = [found[1] or "/" for a in args if not a.startswith("-") and (found := _URL.match(a))]
        status = await self._shell.get(paths[-1]) if paths else None
        if status is None:
            return 7
        return 0 if status < 400 else 22


def _seconds(text: str) -> float:
    if text == "infinity":
        return 1e9
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    try:
        return float(text[:-1]) * unit if unit else float(text)
    except ValueError as error:
        raise NotUnderstood(f"sleep {text}") from error


def _test(shell: Shell, args: Sequence[str]) -> bool:
    words = [a for a in args if a != "]"]
    if words[:1] == ["!"]:
        return not _test(shell, words[1:])
    if len(words) == 2 and words[0] in ("-e", "-f", "-s"):
        return words[1] in shell.files
    if len(words) == 3 and words[1] in ("=", "=="):
        return words[0] == words[2]
    raise NotUnderstood(f"test {' '.join(args)}")


COMMANDS = (
    "exit", "sleep", "idle", "echo", "touch", "rm", "trap", "cat", "test", "[", "true", "false", ":", "curl", "wget",
)  # fmt: skip
