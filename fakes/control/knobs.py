"""The switches of a world: each has a name, and stands at its default for each target until somebody turns it."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

Value = Any
"""A JSON value. None is a knob's default."""
Check = Callable[[Value], str | None]
"""What is wrong with a value, in words; None when it is right."""
NEVER = "never"
Apply = Callable[[str, Value], Awaitable[None] | None]
"""What cannot be done at once, as on a real machine, is awaited."""


class ControlError(Exception):
    """A call of the control API that the world refuses. ``status`` is the HTTP code."""

    status = 409
    reason = ""
    """A word for programs, where the status alone does not tell."""


class UnknownName(ControlError):
    """No such knob, verb or target."""

    status = 404


class UnknownTarget(UnknownName):
    """The knob is there; what it should be turned for is not, or not any more."""

    reason = "unknown_target"


class BadValue(ControlError):
    """The value is not what this knob takes."""

    status = 400


@dataclass(frozen=True, slots=True)
class Knob:
    """``apply(target, value)`` has taken effect when it is over; ``None`` gives the target its default back."""

    name: str
    targets: Callable[[], Collection[str]]
    check: Check
    apply: Apply


class Knobs:
    def __init__(self) -> None:
        self._knobs: dict[str, Knob] = {}
        self._values: dict[tuple[str, str], Value] = {}

    def add(self, name: str, targets: Callable[[], Collection[str]], check: Check, apply: Apply) -> None:
        self._knobs[name] = Knob(name, targets, check, apply)

    def value(self, name: str, target: str) -> Value:
        self._of(name)
        return self._values.get((name, target))

    def turned(self) -> Mapping[tuple[str, str], Value]:
        """Everything that does not stand at its default."""
        return dict(self._values)

    async def turn(self, name: str, target: str, value: Value) -> None:
        """Turning back what is gone is no error: a lost node needs nothing undone. What failed half-way counts as
        turned, until it has been turned back."""
        knob = self._of(name)
        there = target in knob.targets()
        if value is None:
            if (name, target) in self._values and there:
                await done(knob.apply(target, None))
            self._values.pop((name, target), None)
            return
        if not there:
            known = ", ".join(sorted(knob.targets())) or "none"
            raise UnknownTarget(f"{name} has no target {target}; there are: {known}")
        if wrong := knob.check(value):
            raise BadValue(f"{name}: {wrong}, got {value!r}")
        self._values[name, target] = value
        await done(knob.apply(target, value))

    def _of(self, name: str) -> Knob:
        if name not in self._knobs:
            raise UnknownName(f"there is no knob {name}; there are: {', '.join(sorted(self._knobs))}")
        return self._knobs[name]


async def done(deed: Awaitable[None] | None) -> None:
    if deed is not None:
        await deed


_MOST = 1e300
"""Of a number, so that arithmetic on it stays finite."""


def number(at_least: float = 0.0, at_most: float = math.inf) -> Check:
    def check(value: Value) -> str | None:
        ok = not isinstance(value, bool) and isinstance(value, int | float)
        # In this order, for a whole number of hundreds of digits is too much for isfinite.
        ok = ok and at_least <= value <= at_most and abs(value) <= _MOST and math.isfinite(value)
        return None if ok else f"must be a number from {at_least:g} to {at_most:g}"

    return check


def whole(at_least: int = 0, at_most: int | None = None) -> Check:
    upto = "or more" if at_most is None else f"to {at_most}"

    def check(value: Value) -> str | None:
        ok = not isinstance(value, bool) and isinstance(value, int) and value >= at_least
        return None if ok and (at_most is None or value <= at_most) else f"must be a whole number, {at_least} {upto}"

    return check


def seconds_or_never(value: Value) -> str | None:
    """How late something comes, if it comes."""
    return None if value == NEVER else number()(value)


def flag(value: Value) -> str | None:
    return None if value is True else "must be true"


def text(value: Value) -> str | None:
    return None if isinstance(value, str) and value else "must be text"


def one_of(*known: str) -> Check:
    return lambda value: None if value in known else f"must be one of {', '.join(known)}"


def shape(**checks: Check) -> Check:
    """An object with exactly these keys."""

    def check(value: Value) -> str | None:
        if not isinstance(value, dict) or set(value) != set(checks):
            return f"must be an object with the keys {', '.join(checks)}"
        wrong = [f"{key}: {why}" for key, of in checks.items() if (why := of(value[key]))]
        return "; ".join(wrong) or None

    return check
