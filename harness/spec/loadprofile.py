"""A load profile: how requests arrive, how long they are, how the client behaves.

``duration_s``, ``longest_stream_s`` and the times of arrivals are scenario seconds; rates are requests per *clock*
second, and everything under ``send`` is clock seconds, since tokens are never scaled. The kinds of arrivals, of
lengths and what requests are like stand in modules of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, Strict, model_validator

from harness.spec.arrivals import Arrivals, SequenceArrivals, SumArrivals, TraceArrivals, check_within, every_kind
from harness.spec.document import Document, read_document
from harness.spec.filekind import refuse_experiment
from harness.spec.mistakes import parse
from harness.spec.mix import FixedTime, Mix
from harness.spec.model import Count, Millis, Seconds, SpecModel, Text, mistake
from harness.spec.tokens import TokenLengths, TraceTokens


class SendSpec(SpecModel):
    """The client's patience, in clock seconds. Sends later than ``lag_ms_p99_max`` were not offered."""

    connect_timeout_s: Seconds = 2.0
    first_token_timeout_s: Seconds = 20.0
    stall_timeout_s: Seconds = 5.0
    deadline_s: Seconds = 40.0
    lag_ms_p99_max: Millis = 50.0
    workers: Annotated[int, Strict(), Field(ge=1, le=64)] = 1
    """Load processes that share the schedule."""
    retry_reset_reused: bool = False
    """One more attempt where a kept-alive connection was closed before the server said anything; both are recorded."""

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
    mix: Mix = Mix()
    send: SendSpec = SendSpec()
    trace: TraceLimits = TraceLimits()

    @model_validator(mode="after")
    def _within_duration(self) -> LoadProfileSpec:
        check_within(self.arrivals, self.duration_s, ("arrivals",))
        return self

    @model_validator(mode="after")
    def _rows_and_lengths(self) -> LoadProfileSpec:
        """Lengths of the row that arrives need rows, and only rows, to arrive."""
        leaves = [a for a in every_kind(self.arrivals) if not isinstance(a, SumArrivals | SequenceArrivals)]
        rows_only = all(isinstance(a, TraceArrivals) for a in leaves)
        for name in ("prompt", "output"):
            tokens = getattr(self.tokens, name)
            if not isinstance(tokens, TraceTokens) or tokens.file is not None:
                continue
            if not rows_only:
                raise mistake(
                    "takes the lengths of the trace's row, but not all arrivals are of kind trace",
                    key=("tokens", name),
                    hint="name a file to draw lengths from: {kind: trace, file: ...}",
                )
            if self.mix.sessions is not None:
                raise mistake(
                    "takes the lengths of the trace's row, which cannot have further turns",
                    key=("tokens", name),
                    hint="name a file to draw lengths from, or leave out mix.sessions",
                )
        return self

    @model_validator(mode="after")
    def _hang_ups_before_the_deadline(self) -> LoadProfileSpec:
        for index, part in enumerate(self.mix.hang_ups):
            time = part.after_s
            if isinstance(time, FixedTime) and time.time_s >= self.send.deadline_s:
                raise mistake(
                    f"is {time.time_s:g}, not before send.deadline_s ({self.send.deadline_s:g}), at which the client "
                    "gives up anyway: nobody would hang up",
                    key=("mix", "hang_ups", index, "after_s", "time_s"),
                    hint="hang up earlier, or raise send.deadline_s; both are clock seconds",
                )
        return self


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
    def mix(self) -> Mix:
        return self.spec.mix

    @property
    def send(self) -> SendSpec:
        return self.spec.send

    @property
    def time_scale_min(self) -> float:
        """Below it the client would give up the longest stream, which is scenario seconds, at its deadline."""
        return self.longest_stream_s / self.send.deadline_s

    def check_patience(self, time_scale: float) -> None:
        """The client must outwait the longest stream. BadInput on the deadline's line, or the stream's where the
        deadline is as usual."""
        longest_s = self.longest_stream_s / time_scale
        if longest_s <= self.send.deadline_s:
            return
        written = ("send", "deadline_s") in self.document.lines
        raise self.document.mistake(
            ("send", "deadline_s") if written else ("longest_stream_s",),
            f"the longest stream takes {longest_s:g} clock seconds ({self.longest_stream_s:g} scenario seconds), but "
            f"the client gives up after {self.send.deadline_s:g}",
            "raise send.deadline_s (clock seconds), or lower longest_stream_s; a time_scale of at least "
            f"{self.time_scale_min:.3g} would do, too",
        )


def load_profile(path: Path) -> LoadProfile:
    document = read_document(path)
    refuse_experiment(document)
    return LoadProfile(parse(LoadProfileSpec, document.data, document, ()), document)
