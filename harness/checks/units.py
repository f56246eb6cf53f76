"""History nanoseconds into the units people read. The only conversions of the checks and of the report."""

from __future__ import annotations

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000


def clock_s(ns: int) -> float:
    return ns / NS_PER_S


def scenario_s(ns: int, time_scale: float) -> float:
    return ns / NS_PER_S * time_scale


def span_ns(seconds: float, time_scale: float) -> int:
    """Scenario seconds, as limits are written, in nanoseconds of the clock."""
    return round(seconds / time_scale * NS_PER_S)


def ms(ns: int) -> float:
    return ns / NS_PER_MS


def both(ns: int, time_scale: float) -> str:
    """A span in scenario seconds, and in clock seconds where the two differ."""
    text = f"{scenario_s(ns, time_scale):.1f} s"
    return text if time_scale == 1 else f"{text} ({clock_s(ns):.2f} s on the clock)"


def count(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def listed(names: list[str], at_most: int = 5) -> str:
    """``a, b and 3 more``: a sentence stays readable whatever the number."""
    shown = names[:at_most]
    rest = len(names) - len(shown)
    if rest:
        return f"{', '.join(shown)} and {rest} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)
