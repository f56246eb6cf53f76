"""Who sends what kind of request, as written in a load profile: shared prefixes, sessions, tenants, hang-ups.

Thinking times are scenario seconds, since people think; what a client does with an answer (the allowance for one, the
patience before it hangs up) is clock seconds, since tokens are never scaled.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict, model_validator

from harness.spec.model import Count, Millis, Ratio, Seconds, SecondsFromZero, SpecModel, mistake
from harness.spec.tokens import DrawnTokens

Positive = Annotated[float, Strict(), Field(gt=0)]


class PrefixLayer(SpecModel):
    """``groups`` texts, each of a length drawn once; the k-th is taken with a share in proportion to 1/k to the
    ``zipf``.

    The text stands before the tokens of ``tokens.prompt`` and is added to them. Layers stand one behind another, as a
    system prompt before a document. ``share`` is the part of requests (of sessions, where there are some) that has one.
    """

    groups: Annotated[int, Strict(), Field(ge=1, le=100_000)]
    zipf: Annotated[float, Strict(), Field(ge=0, le=5)] = 1.0
    tokens: DrawnTokens
    share: Ratio = 1.0


class FixedTime(SpecModel):
    """Always the same time."""

    kind: Literal["fixed"]
    time_s: SecondsFromZero


class ExponentialTime(SpecModel):
    """Exponential, cut at ``max_s``."""

    kind: Literal["exponential"]
    mean_s: Seconds
    max_s: Seconds | None = None

    @model_validator(mode="after")
    def _middle(self) -> ExponentialTime:
        _check_max(self.max_s, "mean_s", self.mean_s)
        return self


class LogNormalTime(SpecModel):
    """Half below ``median_s``, 68 % within a factor of e to the ``sigma``; cut at ``max_s``."""

    kind: Literal["log_normal"]
    median_s: Seconds
    sigma: Annotated[float, Strict(), Field(ge=0, le=5)]
    max_s: Seconds | None = None

    @model_validator(mode="after")
    def _middle(self) -> LogNormalTime:
        _check_max(self.max_s, "median_s", self.median_s)
        return self


def _check_max(max_s: float | None, name: str, middle_s: float) -> None:
    if max_s is not None and max_s < middle_s:
        raise mistake(f"is {max_s:g}, below {name} ({middle_s:g}): most times would be {max_s:g}", key=("max_s",))


Time = Annotated[FixedTime | ExponentialTime | LogNormalTime, Field(discriminator="kind")]


class Sessions(SpecModel):
    """Arrivals become first turns; further turns follow at times that are planned, not waited for.

    Turn n+1 is planned after turn n's time, the allowance for its answer (``first_token_ms`` and ``token_ms`` for
    each of its tokens, clock time) and the thinking (scenario seconds). Its prompt is all that was said before, and
    then as many new tokens as ``tokens.prompt`` gives. The number of turns is ``turns_min`` and a geometric
    number more, so that the mean is ``turns_mean``, and then cut at ``turns_max``, which lowers it. A session also ends
    before a turn of more than ``context_tokens_max`` tokens, answer included.
    """

    share: Ratio = 1.0
    turns_mean: Annotated[float, Strict(), Field(ge=1, le=1000)]
    turns_min: Annotated[int, Strict(), Field(ge=1, le=1000)] = 1
    turns_max: Annotated[int, Strict(), Field(ge=1, le=1000)] = 50
    think_s: Time
    first_token_ms: Millis = 500.0
    token_ms: Millis = 20.0
    context_tokens_max: Count = 32_768

    @model_validator(mode="after")
    def _reachable(self) -> Sessions:
        if self.turns_mean > self.turns_max:
            raise mistake(
                f"is {self.turns_mean:g}, more than turns_max ({self.turns_max})", key=("turns_mean",),
                hint="for always the same number of turns set turns_min, turns_mean and turns_max to it",
            )  # fmt: skip
        if self.turns_mean < self.turns_min:
            raise mistake(f"is {self.turns_min}, more than turns_mean ({self.turns_mean:g})", key=("turns_min",))
        return self


class Tenant(SpecModel):
    """``share`` is relative to the other tenants' shares. ``priority`` is sent as vLLM reads it: lower goes first."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$")]
    share: Positive
    priority: Annotated[int, Strict(), Field(ge=-1_000_000, le=1_000_000)] | None = None


class HangUp(SpecModel):
    """A ``share`` of all requests whose client closes the connection: when ``after_tokens`` tokens have come, or
    ``after_s`` clock seconds after the send, whatever has come. An answer that is whole before is no hang-up."""

    share: Annotated[float, Strict(), Field(gt=0, le=1)]
    after_tokens: DrawnTokens | None = None
    after_s: Time | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> HangUp:
        if (self.after_tokens is None) == (self.after_s is None):
            raise mistake("needs after_tokens or after_s, and only one of them", key=("share",))
        return self


class Mix(SpecModel):
    """What the requests are like, beyond when they come and how long they are."""

    prefixes: tuple[PrefixLayer, ...] = Field(default=(), max_length=8)
    sessions: Sessions | None = None
    tenants: tuple[Tenant, ...] = ()
    stream_share: Ratio = 1.0
    hang_ups: tuple[HangUp, ...] = ()

    @model_validator(mode="after")
    def _sound(self) -> Mix:
        names = [tenant.name for tenant in self.tenants]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise mistake(f"the tenant {name!r} stands here twice", key=("tenants", index, "name"))
        total = sum(part.share for part in self.hang_ups)
        if total > 1 + 1e-9:
            raise mistake(f"the shares add up to {total:g}, more than all requests", key=("hang_ups",))
        return self
