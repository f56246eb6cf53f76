"""A load profile: how requests arrive, how long they are, how the client behaves.

``duration_s``, ``longest_stream_s`` and all ``start_s``/``end_s``/``*_mean_s`` of arrivals are scenario seconds; rates
are requests per *clock* second, and everything under ``send`` is clock seconds, since tokens are never scaled.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, Strict, field_validator, model_validator

from harness.spec.document import Document, read_document
from harness.spec.mistakes import parse
from harness.spec.model import (
    Count,
    Millis,
    PerSecond,
    PerSecondFromZero,
    Seconds,
    SecondsFromZero,
    SpecModel,
    Text,
    mistake,
)

# --- arrivals --------------------------------------------------------------------------------------------------------


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


SimpleArrivals = Annotated[
    ConstantArrivals | PoissonArrivals | GammaArrivals | BurstArrivals | OnOffArrivals | RampArrivals,
    Field(discriminator="kind"),
]


class SumArrivals(SpecModel):
    """Several processes at once, each with its own stream of chance."""

    kind: Literal["sum"]
    parts: tuple[SimpleArrivals, ...] = Field(min_length=2)


Arrivals = Annotated[
    ConstantArrivals | PoissonArrivals | GammaArrivals | BurstArrivals | OnOffArrivals | RampArrivals | SumArrivals,
    Field(discriminator="kind"),
]

# --- tokens ----------------------------------------------------------------------------------------------------------


class FixedTokens(SpecModel):
    """Always the same length."""

    kind: Literal["fixed"]
    tokens: Count


class QuantileTokens(SpecModel):
    """A distribution by its quantiles: ``points`` are [quantile, tokens] from 0 to 1, straight lines between them.

    ``max_tokens`` cuts longer draws down to it, so that a stated share of requests has exactly that length.
    """

    kind: Literal["quantiles"]
    points: tuple[tuple[float, float], ...] = Field(min_length=2)
    max_tokens: Count | None = None

    @field_validator("points", mode="before")
    @classmethod
    def _pairs(cls, points: Any) -> Any:
        for index, point in enumerate(points if isinstance(points, list) else ()):
            numbers = isinstance(point, list) and all(type(x) in (int, float) for x in point)
            if not numbers or len(point) != 2:
                raise mistake(
                    "is not a pair of numbers", key=(index,), hint="write [quantile, tokens], as in [0.5, 129]"
                )
        return points

    @model_validator(mode="after")
    def _rising(self) -> QuantileTokens:
        quantiles = [q for q, _ in self.points]
        tokens = [t for _, t in self.points]
        if quantiles[0] != 0 or quantiles[-1] != 1:
            raise mistake("the table must reach from quantile 0 to 1", key=("points",))
        for index in range(1, len(self.points)):
            if quantiles[index] <= quantiles[index - 1]:
                raise mistake("the quantiles must rise", key=("points", index))
            if tokens[index] < tokens[index - 1]:
                raise mistake("the tokens must not fall", key=("points", index))
        if tokens[0] < 1:
            raise mistake("a request has at least 1 token", key=("points", 0))
        return self


Tokens = Annotated[FixedTokens | QuantileTokens, Field(discriminator="kind")]


class FittedFrom(SpecModel):
    """Where a table of token lengths comes from."""

    data: Text
    licence: Text
    rows: Count
    how: Text


class TokenLengths(SpecModel):
    """Prompt and output are drawn independently of each other; only a trace keeps them together."""

    prompt: Tokens
    output: Tokens
    fitted_from: FittedFrom | None = None


# --- the whole -------------------------------------------------------------------------------------------------------


class SendSpec(SpecModel):
    """The client's patience, in clock seconds. Sends later than ``lag_ms_p99_max`` were not offered."""

    connect_timeout_s: Seconds = 2.0
    first_token_timeout_s: Seconds = 20.0
    stall_timeout_s: Seconds = 5.0
    deadline_s: Seconds = 40.0
    lag_ms_p99_max: Millis = 50.0

    @model_validator(mode="after")
    def _deadline_last(self) -> SendSpec:
        for name in ("connect_timeout_s", "first_token_timeout_s", "stall_timeout_s"):
            if getattr(self, name) > self.deadline_s:
                raise mistake(
                    f"is {getattr(self, name):g}, longer than deadline_s ({self.deadline_s:g}): it could never strike",
                    key=(name,),
                )
        return self


class TraceLimits(SpecModel):
    """Limits for rows of a ``--trace``: longer rows are cut down to them, and the plan counts how many were."""

    prompt_tokens_max: Count | None = None
    output_tokens_max: Count | None = None


class LoadProfileSpec(SpecModel):
    """The file as written."""

    title: Text
    description: str = ""
    duration_s: Seconds
    longest_stream_s: Seconds
    peak_to_mean_min: Annotated[float, Strict(), Field(ge=1)] | None = None
    arrivals: Arrivals
    tokens: TokenLengths
    send: SendSpec = SendSpec()
    trace: TraceLimits = TraceLimits()

    @model_validator(mode="after")
    def _within_duration(self) -> LoadProfileSpec:
        parts = self.arrivals.parts if isinstance(self.arrivals, SumArrivals) else (self.arrivals,)
        for index, part in enumerate(parts):
            key: tuple[str | int, ...] = ("arrivals", "parts", index) if len(parts) > 1 else ("arrivals",)
            for name, end_s in _ends(part):
                if end_s > self.duration_s:
                    raise mistake(
                        f"ends at {end_s:g} s, but the profile lasts {self.duration_s:g} s",
                        key=(*key, *name),
                        hint="raise duration_s or end earlier; both are scenario seconds",
                    )
        return self


def _ends(part: Any) -> list[tuple[tuple[str | int, ...], float]]:
    if isinstance(part, BurstArrivals):
        return [(("windows", i, "end_s"), window.end_s) for i, window in enumerate(part.windows)]
    if isinstance(part, RampArrivals):
        return [(("end_s",), part.end_s or 0.0), (("start_s",), part.start_s)]
    return []


@dataclass(frozen=True, slots=True)
class LoadProfile:
    """A profile and the file it came from, so that later mistakes can still name a line."""

    spec: LoadProfileSpec
    document: Document

    @property
    def title(self) -> str:
        return self.spec.title

    @property
    def duration_s(self) -> float:
        return self.spec.duration_s

    @property
    def longest_stream_s(self) -> float:
        return self.spec.longest_stream_s

    @property
    def peak_to_mean_min(self) -> float | None:
        return self.spec.peak_to_mean_min

    @property
    def arrivals(self) -> Arrivals:
        return self.spec.arrivals

    @property
    def tokens(self) -> TokenLengths:
        return self.spec.tokens

    @property
    def send(self) -> SendSpec:
        return self.spec.send


def load_profile(path: Path) -> LoadProfile:
    document = read_document(path)
    return LoadProfile(parse(LoadProfileSpec, document.data, document, ()), document)
