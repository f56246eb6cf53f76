"""The server's /metrics: names, types, labels and buckets as vLLM 0.32 exports them.

Every series exists at 0 from the start, but for ``http_requests_total``, whose series appear with the first request of
a handler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fakes.metrics.exposition import Family, Histogram, Sums, Value, exposition

if TYPE_CHECKING:
    from fakes.vllm.engine import EngineRequest

TTFT_BUCKETS_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
)  # fmt: skip
TOKEN_BUCKETS_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
REQUEST_BUCKETS_S = (
    0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
)  # fmt: skip
ITERATION_BUCKETS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")


def one_two_five(limit: int) -> tuple[int, ...]:
    """1, 2, 5, 10, ... up to ``limit``."""
    steps: list[int] = []
    decade = 1
    while True:
        for m in (1, 2, 5):
            if m * decade > limit:
                return tuple(steps)
            steps.append(m * decade)
        decade *= 10


class EngineMetrics:
    """All series of one server, and the few moments at which the engine moves them."""

    def __init__(self, model: str, *, max_model_len: int, cache_config: dict[str, str], created_s: float) -> None:
        self._labels = [("engine", "0"), ("model_name", model)]
        self._created_s = created_s
        self._families: list[Family] = []
        self._http: dict[tuple[str, str, str], Value] = {}
        self._sums: Sums | None = None
        self._summed_http = 0
        self._declare_values(model, cache_config)
        self._declare_histograms(one_two_five(max_model_len))

    def _values(self, kind: str, name: str, help: str, key: str = "", values: Sequence[str] = ()) -> list[Value]:
        series = [Value([*self._labels, (key, v)]) for v in values] if key else [Value(self._labels)]
        self._families.append(Family(f"vllm:{name}", kind, help, series))
        return series

    def _histogram(self, name: str, help: str, bounds: Sequence[float]) -> Histogram:
        histogram = Histogram(self._labels, bounds)
        self._families.append(Family(f"vllm:{name}", "histogram", help, histogram))
        return histogram

    def _declare_values(self, model: str, cache_config: dict[str, str]) -> None:
        gauge, counter = "gauge", "counter"
        (self.running,) = self._values(gauge, "num_requests_running", "Number of requests in model execution batches.")
        (self.waiting,) = self._values(gauge, "num_requests_waiting", "Number of requests waiting to be processed.")
        self._waiting_capacity, _ = self._values(
            gauge, "num_requests_waiting_by_reason", "Number of waiting requests by reason.",
            "reason", ("capacity", "deferred"),
        )  # fmt: skip
        awake, *_ = self._values(
            gauge, "engine_sleep_state", "Engine sleep state.",
            "sleep_state", ("awake", "weights_offloaded", "discard_all"),
        )  # fmt: skip
        awake.value = 1
        (self.kv_usage,) = self._values(gauge, "kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.")
        (self.prefix_queries,) = self._values(
            counter, "prefix_cache_queries_total", "Prefix cache queries, in terms of number of queried tokens."
        )
        self._values(counter, "prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens.")
        (self.preemptions,) = self._values(
            counter, "num_preemptions_total", "Cumulative number of preemption from the engine."
        )
        (self.prompt_tokens,) = self._values(counter, "prompt_tokens_total", "Number of prefill tokens processed.")
        self._local_compute, *_ = self._values(
            counter, "prompt_tokens_by_source_total", "Number of prompt tokens by source.",
            "source", ("local_compute", "local_cache_hit", "external_kv_transfer"),
        )  # fmt: skip
        self._values(counter, "prompt_tokens_cached_total", "Number of cached prompt tokens (local + external).")
        (self.generation_tokens,) = self._values(
            counter, "generation_tokens_total", "Number of generation tokens processed."
        )
        success = self._values(
            counter, "request_success_total", "Count of successfully processed requests.",
            "finished_reason", FINISH_REASONS,
        )  # fmt: skip
        self.success = dict(zip(FINISH_REASONS, success, strict=True))
        reasons = ("max_num_queued_reqs", "max_num_queued_tokens")
        rejections = [Value([("model_name", model), ("reason", r)]) for r in reasons]
        self.rejected_reqs = rejections[0]
        self._families.append(
            Family(
                "vllm:admission_rejections_total", counter,
                "Number of admission attempts rejected by a queue limit, by reason.", rejections,
            )
        )  # fmt: skip
        info = Value([*cache_config.items(), ("engine", "0")], 1)
        self._families.append(
            Family("vllm:cache_config_info", gauge, "Information of the LLMEngine CacheConfig", [info])
        )

    def _declare_histograms(self, token_counts: Sequence[int]) -> None:
        h = self._histogram
        self.request_prompt_tokens = h("request_prompt_tokens", "Number of prefill tokens processed.", token_counts)
        self.request_generation_tokens = h(
            "request_generation_tokens", "Number of generation tokens processed.", token_counts
        )
        self.iteration_tokens = h(
            "iteration_tokens_total", "Histogram of number of tokens per engine_step.", ITERATION_BUCKETS
        )
        self.params_max_tokens = h(
            "request_params_max_tokens", "Histogram of the max_tokens request parameter.", token_counts
        )
        self.ttft = h("time_to_first_token_seconds", "Histogram of time to first token in seconds.", TTFT_BUCKETS_S)
        self.itl = h("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", TOKEN_BUCKETS_S)
        self.tpot = h(
            "request_time_per_output_token_seconds", "Histogram of time_per_output_token_seconds per request.",
            TOKEN_BUCKETS_S,
        )  # fmt: skip
        phases = {
            "e2e_request_latency_seconds": "Histogram of e2e request latency in seconds.",
            "request_queue_time_seconds": "Histogram of time spent in WAITING phase for request.",
            "request_inference_time_seconds": "Histogram of time spent in RUNNING phase for request.",
            "request_prefill_time_seconds": "Histogram of time spent in PREFILL phase for request.",
            "request_decode_time_seconds": "Histogram of time spent in DECODE phase for request.",
        }
        self.e2e, self.queue_time, self.inference_time, self.prefill_time, self.decode_time = (
            h(name, help, REQUEST_BUCKETS_S) for name, help in phases.items()
        )
        self.request_preemptions = h(
            "request_num_preemptions", "Histogram of the number of times a request was preempted.",
            (1, 2, 3, 4, 5, 10, 20),
        )  # fmt: skip

    # Moments of the engine.

    def show_queue(self, running: int, waiting: int, kv_ratio: float) -> None:
        self.running.value = running
        self.waiting.value = waiting
        self._waiting_capacity.value = waiting
        self.kv_usage.value = kv_ratio

    def admitted(self, prompt_tokens: int) -> None:
        self.prefix_queries.value += prompt_tokens

    def token(self, request: EngineRequest, now: float) -> None:
        self.generation_tokens.value += 1
        if request.generated > 1:
            self.itl.observe(now - request.last_token_s)
            return
        request.first_token_s = now
        self.ttft.observe(now - request.arrived_s)
        self.prompt_tokens.value += request.prompt_tokens
        self._local_compute.value += request.prompt_tokens

    def finished(self, request: EngineRequest, now: float) -> None:
        scheduled_s = request.arrived_s if request.scheduled_s is None else request.scheduled_s
        self.success[request.stop_reason].value += 1
        self.request_prompt_tokens.observe(request.prompt_tokens)
        self.request_generation_tokens.observe(request.generated)
        self.params_max_tokens.observe(request.max_tokens)
        self.e2e.observe(now - request.arrived_s)
        self.queue_time.observe(scheduled_s - request.arrived_s)
        self.inference_time.observe(now - scheduled_s)
        self.prefill_time.observe(request.first_token_s - scheduled_s)
        self.decode_time.observe(now - request.first_token_s)
        self.request_preemptions.observe(request.preemptions)
        if request.generated > 1:
            self.tpot.observe((now - request.first_token_s) / (request.generated - 1))

    def http(self, handler: str, method: str, status: int) -> None:
        """vLLM does not count its own /health, /metrics, /load, /ping and /version here."""
        key = (handler, method, f"{status // 100}xx")
        if key not in self._http:
            self._http[key] = Value([("handler", handler), ("method", method), ("status", key[2])])
        self._http[key].value += 1

    def text(self) -> str:
        return exposition(self._all_families(), self._created_s)

    def sums(self) -> dict[str, float]:
        """What a reader of ``text`` knows who adds up the series of each metric and leaves buckets alone."""
        if self._sums is None or len(self._http) != self._summed_http:
            self._sums, self._summed_http = Sums(self._all_families(), self._created_s), len(self._http)
        return self._sums.read()

    def _all_families(self) -> list[Family]:
        if not self._http:
            return self._families
        help = "Total number of requests by method, status and handler."
        return [*self._families, Family("http_requests_total", "counter", help, list(self._http.values()))]
