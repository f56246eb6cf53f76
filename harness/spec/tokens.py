"""How long prompts and answers are, as written in a load profile; all in tokens."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict, field_validator, model_validator

from harness.spec.model import MOST, Count, SpecModel, Text, mistake
from harness.spec.tables import check_rising, number_lists


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
    def _pairs(cls, points: object) -> object:
        return number_lists(points, 2, "write [quantile, tokens], as in [0.5, 129]")

    @model_validator(mode="after")
    def _rising(self) -> QuantileTokens:
        check_rising(self.points, "points", "tokens", least=1)
        return self


class _Bounded(SpecModel):
    """Draws below ``min_tokens`` or above ``max_tokens`` become that bound."""

    min_tokens: Count = 1
    max_tokens: Count | None = None

    @model_validator(mode="after")
    def _bounds(self) -> _Bounded:
        if self.max_tokens is not None and self.max_tokens < self.min_tokens:
            raise mistake(f"is {self.max_tokens}, below min_tokens ({self.min_tokens})", key=("max_tokens",))
        return self

    def _within(self, name: str) -> None:
        """A middle beyond a bound would be none: most draws would become the bound."""
        middle: float = getattr(self, name)
        for bound, beyond in (("max_tokens", "above"), ("min_tokens", "below")):
            value: int | None = getattr(self, bound)
            if value is not None and (middle > value if beyond == "above" else middle < value):
                raise mistake(
                    f"is {middle:g}, {beyond} {bound} ({value}): most lengths would be {value}", key=(name,),
                    hint=f"{{kind: fixed, tokens: {value}}} makes all of them so long",
                )  # fmt: skip


class NormalTokens(_Bounded):
    """The normal distribution."""

    kind: Literal["normal"]
    mean_tokens: Annotated[float, Strict(), Field(gt=0, le=10_000_000)]
    sd_tokens: Annotated[float, Strict(), Field(ge=0, le=10_000_000)]

    @model_validator(mode="after")
    def _middle(self) -> NormalTokens:
        self._within("mean_tokens")
        return self


class LogNormalTokens(_Bounded):
    """Lengths whose logarithm is normal: half lie below ``median_tokens``, 68 % within a factor of e to the
    ``sigma``."""

    kind: Literal["log_normal"]
    median_tokens: Annotated[float, Strict(), Field(gt=0, le=10_000_000)]
    sigma: Annotated[float, Strict(), Field(ge=0, le=5)]

    @model_validator(mode="after")
    def _middle(self) -> LogNormalTokens:
        self._within("median_tokens")
        return self


class HistogramTokens(SpecModel):
    """``bins`` are [first, last, weight]: a bin by its weight, then any whole length in it, both ends included."""

    kind: Literal["histogram"]
    bins: tuple[tuple[int, int, float], ...] = Field(min_length=1)

    @field_validator("bins", mode="before")
    @classmethod
    def _triples(cls, bins: object) -> object:
        return number_lists(bins, 3, "write [first, last, weight], as in [1, 128, 0.4]")

    @model_validator(mode="after")
    def _sound(self) -> HistogramTokens:
        for index, (first, last, weight) in enumerate(self.bins):
            if first < 1 or last < first or last > MOST:
                raise mistake(f"a bin goes from at least 1 token up, to at most {MOST}", key=("bins", index))
            if weight < 0:
                raise mistake("the weight is below 0", key=("bins", index))
        if not any(weight for _, _, weight in self.bins):
            raise mistake("all weights are 0", key=("bins",))
        return self


class TraceTokens(SpecModel):
    """The lengths of a recorded trace. Without ``file``: those of the row that arrives. With it: of a row drawn from
    the file; where prompt and output name the same file, both come from the same row."""

    kind: Literal["trace"]
    file: Text | None = None
    max_tokens: Count | None = None


Tokens = Annotated[
    FixedTokens | QuantileTokens | NormalTokens | LogNormalTokens | HistogramTokens | TraceTokens,
    Field(discriminator="kind"),
]
DrawnTokens = Annotated[
    FixedTokens | QuantileTokens | NormalTokens | LogNormalTokens | HistogramTokens, Field(discriminator="kind")
]


class FittedFrom(SpecModel):
    """Where a table of token lengths comes from, and how well it fits."""

    data: Text
    licence: Text
    rows: Count
    how: Text


class TokenLengths(SpecModel):
    """Prompt and output are drawn independently of each other; only a trace keeps them together."""

    prompt: Tokens
    output: Tokens
    fitted_from: FittedFrom | None = None
