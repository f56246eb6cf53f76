"""The server's /metrics, and the moments at which the engine moves them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fakes.metrics.exposition import Family, Sums, exposition
from fakes.vllm.engine_series import EngineSeries
from fakes.vllm.process_series import HttpSeries, ProcessSeries

if TYPE_CHECKING:
    from fakes.vllm.engine import EngineRequest


class EngineMetrics(EngineSeries):
    """All series of one server."""

    def __init__(self, model: str, *, max_model_len: int, cache_config: Mapping[str, str], created_s: float) -> None:
        super().__init__(model, max_model_len=max_model_len, cache_config=cache_config)
        self._created_s = created_s
        self._process = ProcessSeries(created_s)
        self.http = HttpSeries()
        self._sums: Sums | None = None
        self._summed_http = 0
        self._shown = 0
        self._read: tuple[tuple[float, ...], dict[str, float]] = (), {}
        self._stood: tuple[str, dict[str, float]] | None = None

    # Moments of the engine.

    def show_queue(self, running: int, waiting: int, kv_ratio: float) -> None:
        """With each step, each request that comes, and each that leaves."""
        self._shown += 1
        self.running.value = running
        self.waiting.value = waiting
        self.waiting_for_capacity.value = waiting
        self.kv_usage.value = kv_ratio

    def admitted(self, tokens: int, hit_tokens: int) -> None:
        """For the first time: what a preempted request asks of the cache is not counted."""
        self.prefix_queries.value += tokens
        self.prefix_hits.value += hit_tokens
        self.device_tokens.value += hit_tokens

    def first_token(self, request: EngineRequest, now: float) -> None:
        self.ttft.observe(now - request.arrived_s)
        self.prompt_tokens.value += request.prompt_tokens
        self.computed_tokens.value += request.prompt_tokens - request.hit_tokens
        self.hit_tokens.value += request.hit_tokens
        self.cached_tokens.value += request.hit_tokens

    def finished(self, request: EngineRequest, now: float) -> None:
        scheduled_s = request.arrived_s if request.scheduled_s is None else request.scheduled_s
        self.success[request.stop_reason].value += 1
        self.request_prompt_tokens.observe(request.prompt_tokens)
        self.request_generation_tokens.observe(request.generated)
        self.params_max_tokens.observe(request.max_tokens)
        self.prefill_computed.observe(request.prompt_tokens - request.hit_tokens)
        self.e2e.observe(now - request.arrived_s)
        self.queue_time.observe(scheduled_s - request.arrived_s)
        self.inference_time.observe(now - scheduled_s)
        self.prefill_time.observe(request.first_token_s - scheduled_s)
        self.decode_time.observe(now - request.first_token_s)
        self.request_preemptions.observe(request.preemptions)
        if request.generated > 1:
            self.tpot.observe((now - request.first_token_s) / (request.generated - 1))

    def all_choices_finished(self, choices: int, longest: int) -> None:
        """Of one request, which the engine knows as one sequence for each of its choices."""
        self.params_n.observe(choices)
        self.longest_generation.observe(longest)

    # Reading.

    def stand_still(self, still: bool) -> None:
        """Who reads finds from now on what there was to read just now."""
        if not still:
            self._stood = None
        elif self._stood is None:
            self._stood = self.text(), dict(self.sums())

    def text(self) -> str:
        if self._stood is not None:
            return self._stood[0]
        self._refresh()
        return exposition(self._all_families(), self._created_s)

    def sums(self) -> dict[str, float]:
        """What a reader of ``text`` knows who adds up the series of each metric and leaves buckets alone. Not to be
        changed: while nothing moves it is the same one again, for most of a thousand pods are idle when they are read.
        """
        if self._stood is not None:
            return self._stood[1]
        rejected = sum(value.value for value in self.rejected.values())
        moved = (self._shown, self.generation_tokens.value, self.http.requests, rejected)
        if moved != self._read[0]:
            self._refresh()
            if self._sums is None or self.http.known != self._summed_http:
                self._sums, self._summed_http = Sums(self._all_families(), self._created_s), self.http.known
            self._read = moved, self._sums.read()
        return self._read[1]

    def _refresh(self) -> None:
        in_flight = int(self.running.value + self.waiting.value)
        self._process.refresh(
            requests=self.http.requests, tokens=self.generation_tokens.value, in_flight=in_flight
        )  # fmt: skip

    def _all_families(self) -> list[Family]:
        return [*self._process.families, *self.families, *self.http.families()]
