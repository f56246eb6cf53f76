"""How requests arrive, as written in a load profile.

``*_per_s`` are requests per *clock* second; all other ``*_s`` are scenario seconds, but for a trace, whose own are
trace seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field, Strict, field_validator, model_validator

from harness.spec.model import (
    Flag,
    PerSecond,
    PerSecondFromZero,
    Seconds,
    SecondsFromZero,
    SpecModel,
    Text,
    mistake,
)
from harness.spec.tables import check_rising, number_lists

Key = tuple[str | int, ...]


class ConstantArrivals(SpecModel):
    """Evenly spaced, the first at 0."""

    kind: Literal["constant"]
    rate_per_s: PerSecond


class PoissonArrivals(SpecModel):
    """Independent arrivals: exponential gaps."""

    kind: Literal["poisson"]
    rate_per_s: PerSecond


class GammaArrivals(SpecModel):
    """A renewal process with gamma gaps whose coefficient of variation is ``gap_cv`` (1 is Poisson)."""

    kind: Literal["gamma"]
    rate_per_s: PerSecond
    gap_cv: Annotated[float, Strict(), Field(gt=0, le=50)]


class RenewalArrivals(SpecModel):
    """Independent gaps from a table of quantiles: ``gaps`` are [quantile, gap] from 0 to 1, straight lines between
    them.

    Only the proportions of the gaps count; they are stretched so that ``rate_per_s`` holds on average.
    """

    kind: Literal["renewal"]
    rate_per_s: PerSecond
    gaps: tuple[tuple[float, float], ...] = Field(min_length=2)

    @field_validator("gaps", mode="before")
    @classmethod
    def _pairs(cls, gaps: object) -> object:
        return number_lists(gaps, 2, "write [quantile, gap], as in [0.5, 0.06]")

    @model_validator(mode="after")
    def _rising(self) -> RenewalArrivals:
        check_rising(self.gaps, "gaps", "gaps", least=0)
        if self.gaps[-1][1] <= 0:
            raise mistake("all gaps are 0", key=("gaps",))
        return self


class BurstWindow(SpecModel):
    """``added_per_s`` on top of the base rate in [start_s, end_s)."""

    start_s: SecondsFromZero
    end_s: Seconds
    added_per_s: PerSecond

    @model_validator(mode="after")
    def _in_order(self) -> BurstWindow:
        if self.end_s <= self.start_s:
            raise mistake(f"ends at {self.end_s:g}, but starts at {self.start_s:g}", key=("end_s",))
        return self


class BurstArrivals(SpecModel):
    """Poisson arrivals at a base rate, with windows of more."""

    kind: Literal["bursts"]
    rate_per_s: PerSecondFromZero
    windows: tuple[BurstWindow, ...] = Field(min_length=1)


class OnOffArrivals(SpecModel):
    """A two-state Markov-modulated Poisson process (MMPP); sojourns are exponential, and it starts off."""

    kind: Literal["on_off"]
    on_per_s: PerSecond
    off_per_s: PerSecondFromZero
    on_mean_s: Seconds
    off_mean_s: Seconds


class PulseArrivals(SpecModel):
    """Poisson arrivals at ``on_per_s`` for the first ``on_s`` of each ``period_s``, counted from ``start_s``, and at
    ``off_per_s`` otherwise."""

    kind: Literal["pulses"]
    on_per_s: PerSecond
    off_per_s: PerSecondFromZero = 0.0
    period_s: Seconds
    on_s: Seconds
    start_s: SecondsFromZero = 0.0

    @model_validator(mode="after")
    def _in_order(self) -> PulseArrivals:
        if self.on_s >= self.period_s:
            raise mistake(
                f"is {self.on_s:g}, not shorter than period_s ({self.period_s:g}): it would never be off",
                key=("on_s",),
                hint="the period is from one pulse's start to the next one's; both are scenario seconds",
            )
        return self


class RampArrivals(SpecModel):
    """Poisson arrivals whose rate goes straight from one value to another; flat before and after."""

    kind: Literal["ramp"]
    from_per_s: PerSecondFromZero
    to_per_s: PerSecondFromZero
    start_s: SecondsFromZero = 0.0
    end_s: Seconds | None = None

    @model_validator(mode="after")
    def _in_order(self) -> RampArrivals:
        if self.end_s is not None and self.end_s <= self.start_s:
            raise mistake(f"ends at {self.end_s:g}, but starts at {self.start_s:g}", key=("end_s",))
        if self.from_per_s == 0 and self.to_per_s == 0:
            raise mistake("goes from 0 to 0: no request would ever come", key=("to_per_s",))
        return self


class StepLevel(SpecModel):
    """The rate from ``start_s`` to the next level."""

    start_s: SecondsFromZero
    rate_per_s: PerSecondFromZero


class StepArrivals(SpecModel):
    """Poisson arrivals whose rate jumps from level to level; the first level starts at 0."""

    kind: Literal["step"]
    levels: tuple[StepLevel, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _in_order(self) -> StepArrivals:
        if self.levels[0].start_s != 0:
            raise mistake("the first level must start at 0", key=("levels", 0, "start_s"))
        for index in range(1, len(self.levels)):
            if self.levels[index].start_s <= self.levels[index - 1].start_s:
                raise mistake("the levels must follow one another in time", key=("levels", index, "start_s"))
        if not any(level.rate_per_s for level in self.levels):
            raise mistake("all levels are 0: no request would ever come", key=("levels",))
        return self


class DiurnalArrivals(SpecModel):
    """Poisson arrivals whose rate swings as a cosine between ``low_per_s`` and ``high_per_s``, highest at
    ``peak_s``."""

    kind: Literal["diurnal"]
    low_per_s: PerSecondFromZero
    high_per_s: PerSecond
    period_s: Seconds = 86_400.0
    peak_s: SecondsFromZero = 50_400.0

    @model_validator(mode="after")
    def _in_order(self) -> DiurnalArrivals:
        if self.high_per_s < self.low_per_s:
            raise mistake(f"is {self.high_per_s:g}, below low_per_s ({self.low_per_s:g})", key=("high_per_s",))
        if self.peak_s > self.period_s:
            raise mistake(
                f"is {self.peak_s:g}, after the end of the period ({self.period_s:g})",
                key=("peak_s",),
                hint="both are scenario seconds; the peak comes once in each period",
            )
        return self


class FlashCrowdArrivals(SpecModel):
    """Poisson arrivals at ``rate_per_s``; from ``start_s`` the rate climbs straight to ``peak_per_s`` in ``rise_s``,
    stays for ``hold_s``, and then what is above the base halves every ``half_life_s``."""

    kind: Literal["flash_crowd"]
    rate_per_s: PerSecondFromZero
    peak_per_s: PerSecond
    start_s: SecondsFromZero
    rise_s: Seconds
    hold_s: SecondsFromZero = 0.0
    half_life_s: Seconds

    @model_validator(mode="after")
    def _a_peak(self) -> FlashCrowdArrivals:
        if self.peak_per_s <= self.rate_per_s:
            raise mistake(f"is {self.peak_per_s:g}, not above rate_per_s ({self.rate_per_s:g})", key=("peak_per_s",))
        return self


class TraceArrivals(SpecModel):
    """The arrivals of a recorded trace. ``start_s`` and ``duration_s`` are trace seconds; ``speed`` is trace seconds
    per clock second; ``scale`` thins (below 1) or multiplies (above 1) the rows; ``loop`` repeats the cut to the
    end."""

    kind: Literal["trace"]
    file: Text
    start_s: SecondsFromZero = 0.0
    duration_s: Seconds | None = None
    speed: Annotated[float, Strict(), Field(gt=0)] = 1.0
    scale: Annotated[float, Strict(), Field(gt=0, le=1000)] = 1.0
    loop: Flag = False


class SumArrivals(SpecModel):
    """Several processes at once, each with its own stream of chance."""

    kind: Literal["sum"]
    parts: tuple[Arrivals, ...] = Field(min_length=2)


class SequencePart(SpecModel):
    """One stretch of a sequence; times within it count from its own start. Only the last may leave out
    ``duration_s``."""

    duration_s: Seconds | None = None
    arrivals: Arrivals


class SequenceArrivals(SpecModel):
    """Several processes one after another, each with its own stream of chance."""

    kind: Literal["sequence"]
    parts: tuple[SequencePart, ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _lengths(self) -> SequenceArrivals:
        for index, part in enumerate(self.parts[:-1]):
            if part.duration_s is None:
                raise mistake(
                    "only the last part may leave out its duration_s", key=("parts", index),
                    hint="say how many scenario seconds it lasts",
                )  # fmt: skip
        return self

    def spans(self, lasts_s: float) -> Iterator[tuple[int, float, float, Arrivals]]:
        """Each part that begins within ``lasts_s``: its index, its start, its length, its arrivals."""
        start_s = 0.0
        for index, part in enumerate(self.parts):
            length_s = lasts_s - start_s if part.duration_s is None else part.duration_s
            if length_s > 0:
                yield index, start_s, length_s, part.arrivals
            start_s += length_s


Arrivals = Annotated[
    ConstantArrivals
    | PoissonArrivals
    | GammaArrivals
    | RenewalArrivals
    | BurstArrivals
    | OnOffArrivals
    | PulseArrivals
    | RampArrivals
    | StepArrivals
    | DiurnalArrivals
    | FlashCrowdArrivals
    | TraceArrivals
    | SumArrivals
    | SequenceArrivals,
    Field(discriminator="kind"),
]

SumArrivals.model_rebuild()
SequencePart.model_rebuild()
SequenceArrivals.model_rebuild()


def check_within(arrivals: Arrivals, lasts_s: float, key: Key, whole: str = "the profile") -> None:
    """Nothing may be planned for after the end: it would silently not happen."""
    for name, end_s in _ends(arrivals):
        if end_s > lasts_s:
            raise mistake(
                f"ends at {end_s:g} s, but {whole} lasts {lasts_s:g} s",
                key=(*key, *name),
                hint="raise duration_s or end earlier; both are scenario seconds",
            )
    if isinstance(arrivals, SumArrivals):
        for index, part in enumerate(arrivals.parts):
            check_within(part, lasts_s, (*key, "parts", index), whole)
    if isinstance(arrivals, SequenceArrivals):
        _check_sequence(arrivals, lasts_s, key, whole)


def _check_sequence(arrivals: SequenceArrivals, lasts_s: float, key: Key, whole: str) -> None:
    end_s = 0.0
    for index, part in enumerate(arrivals.parts):
        at: Key = (*key, "parts", index)
        length_s = lasts_s - end_s if part.duration_s is None else part.duration_s
        end_s += length_s
        if length_s <= 0 or end_s > lasts_s:
            raise mistake(
                f"the parts end at {end_s:g} s, but {whole} lasts {lasts_s:g} s",
                key=at if part.duration_s is None else (*at, "duration_s"),
                hint="shorten the parts or raise duration_s; all are scenario seconds",
            )
        check_within(part.arrivals, length_s, (*at, "arrivals"), "its part")
    if end_s < lasts_s:
        raise mistake(
            f"the parts end at {end_s:g} s, but {whole} lasts {lasts_s:g} s",
            key=(*key, "parts", len(arrivals.parts) - 1, "duration_s"),
            hint="leave out the last part's duration_s, and it lasts to the end",
        )


def _ends(part: Arrivals) -> list[tuple[Key, float]]:
    match part:
        case BurstArrivals():
            return [(("windows", i, "end_s"), window.end_s) for i, window in enumerate(part.windows)]
        case PulseArrivals():
            return [(("start_s",), part.start_s)]
        case RampArrivals():
            return [(("end_s",), part.end_s or 0.0), (("start_s",), part.start_s)]
        case StepArrivals():
            return [(("levels", i, "start_s"), level.start_s) for i, level in enumerate(part.levels)]
        case FlashCrowdArrivals():
            return [(("start_s",), part.start_s + part.rise_s + part.hold_s)]
        case _:
            return []


def every_kind(arrivals: Arrivals) -> Iterator[Arrivals]:
    """The process itself and all that it is made of."""
    return (kind for _, kind in placed(arrivals, ()))


def placed(arrivals: Arrivals, key: Key) -> Iterator[tuple[Key, Arrivals]]:
    """The process itself, which stands at ``key``, and all that it is made of, each with its key."""
    yield key, arrivals
    if isinstance(arrivals, SumArrivals):
        for index, part in enumerate(arrivals.parts):
            yield from placed(part, (*key, "parts", index))
    if isinstance(arrivals, SequenceArrivals):
        for index, stretch in enumerate(arrivals.parts):
            yield from placed(stretch.arrivals, (*key, "parts", index, "arrivals"))
