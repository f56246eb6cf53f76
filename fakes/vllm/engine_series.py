"""The engine's part of /metrics: names, types, labels and buckets as vLLM 0.32 exports them, in its order.

Every series exists at 0 from the start. What this server has no part of (an external cache, pictures, estimates of
FLOPs, which are off by default) is there and stays 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fakes.metrics.exposition import Family, Histogram, Value

TTFT_BUCKETS_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
)  # fmt: skip
TOKEN_BUCKETS_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
REQUEST_BUCKETS_S = (
    0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
)  # fmt: skip
ITERATION_BUCKETS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")
SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
TIERS = ("device", "host", "p2p", "disk", "external_unspecified")
SLEEP_STATES = ("awake", "weights_offloaded", "discard_all")
LIMITS = ("max_num_queued_reqs", "max_num_queued_tokens")


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


class EngineSeries:
    """The series that move have a name here; ``families`` has them all."""

    def __init__(self, model: str, *, max_model_len: int, cache_config: Mapping[str, str]) -> None:
        self._labels = [("engine", "0"), ("model_name", model)]
        self.families: list[Family] = []
        self._declare_estimates()
        self._declare_queue()
        self._declare_caches()
        self._declare_tokens()
        self._declare_ends(model)
        self._declare_sizes(one_two_five(max_model_len))
        self._declare_times(one_two_five(max_model_len))
        info = Value([*cache_config.items(), ("engine", "0")], 1)
        self._add("cache_config_info", "gauge", "Information of the LLMEngine CacheConfig", [info])

    def _add(self, name: str, kind: str, help: str, series: Sequence[Value] | Histogram) -> None:
        self.families.append(Family(f"vllm:{name}", kind, help, series))

    def _one(self, kind: str, name: str, help: str) -> Value:
        value = Value(self._labels)
        self._add(name, kind, help, [value])
        return value

    def _by(self, kind: str, name: str, help: str, key: str, values: Sequence[str]) -> dict[str, Value]:
        series = {v: Value([*self._labels, (key, v)]) for v in values}
        self._add(name, kind, help, list(series.values()))
        return series

    def _histogram(self, name: str, help: str, bounds: Sequence[float]) -> Histogram:
        histogram = Histogram(self._labels, bounds)
        self._add(name, "histogram", help, histogram)
        return histogram

    def _declare_estimates(self) -> None:
        for name, what in (
            ("flops", "floating point operations"),
            ("read_bytes", "bytes read from memory"),
            ("write_bytes", "bytes written to memory"),
        ):
            help = f"Estimated number of {what} per GPU (for Model Flops Utilization calculations)."
            self._one("counter", f"estimated_{name}_per_gpu_total", help)

    def _declare_queue(self) -> None:
        self.running = self._one("gauge", "num_requests_running", "Number of requests in model execution batches.")
        self.waiting = self._one("gauge", "num_requests_waiting", "Number of requests waiting to be processed.")
        help = (
            "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; "
            "'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all "
            "reasons equals vllm:num_requests_waiting."
        )
        by_reason = self._by("gauge", "num_requests_waiting_by_reason", help, "reason", ("capacity", "deferred"))
        self.waiting_for_capacity = by_reason["capacity"]
        help = (
            "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; "
            "weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2."
        )
        self._by("gauge", "engine_sleep_state", help, "sleep_state", SLEEP_STATES)["awake"].value = 1

    def _declare_caches(self) -> None:
        self.kv_usage = self._one("gauge", "kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.")
        tokens, items = "in terms of number of {} tokens.", "in terms of number of {} items."
        shared = " from KV connector cross-instance cache sharing"
        for name, what, counted in (
            ("prefix_cache", "Prefix cache {}", tokens),
            ("external_prefix_cache", f"External prefix cache {{}}{shared}", tokens),
            ("mm_cache", "Multi-modal cache {}", items),
        ):
            queries, hits = (
                self._one("counter", f"{name}_{of}_total", f"{what.format(of)}, {counted.format(done)}")
                for of, done in (("queries", "queried"), ("hits", "cached"))
            )
            if name == "prefix_cache":
                self.prefix_queries, self.prefix_hits = queries, hits

    def _declare_tokens(self) -> None:
        one, by = self._one, self._by
        help = "Cumulative number of preemption from the engine."
        self.preemptions = one("counter", "num_preemptions_total", help)
        self.prompt_tokens = one("counter", "prompt_tokens_total", "Number of prefill tokens processed.")
        help = "Number of prompt tokens by source."
        by_source = by("counter", "prompt_tokens_by_source_total", help, "source", SOURCES)
        self.computed_tokens, self.hit_tokens = by_source["local_compute"], by_source["local_cache_hit"]
        help = "Number of cached prompt tokens (local + external)."
        self.cached_tokens = one("counter", "prompt_tokens_cached_total", help)
        help = (
            "Prefix-cache hit tokens by the cache tier that supplied them: device (local HBM), host (offloaded to "
            "DRAM), disk, p2p (transferred from another vLLM instance) or external_unspecified. Counted at admission; "
            "sums to vllm:prefix_cache_hits + vllm:external_prefix_cache_hits."
        )
        self.device_tokens = by("counter", "prompt_tokens_cached_by_source_total", help, "source", TIERS)["device"]
        self.generation_tokens = one("counter", "generation_tokens_total", "Number of generation tokens processed.")

    def _declare_ends(self, model: str) -> None:
        help = "Count of successfully processed requests."
        self.success = self._by("counter", "request_success_total", help, "finished_reason", FINISH_REASONS)
        self.rejected = {r: Value([("model_name", model), ("reason", r)]) for r in LIMITS}
        help = "Number of admission attempts rejected by a queue limit, by reason."
        self._add("admission_rejections_total", "counter", help, list(self.rejected.values()))

    def _declare_sizes(self, counts: Sequence[int]) -> None:
        h = self._histogram
        self.request_prompt_tokens = h("request_prompt_tokens", "Number of prefill tokens processed.", counts)
        help = "Number of generation tokens processed."
        self.request_generation_tokens = h("request_generation_tokens", help, counts)
        help = "Histogram of number of tokens per engine_step."
        self.iteration_tokens = h("iteration_tokens_total", help, ITERATION_BUCKETS)
        help = "Histogram of maximum number of requested generation tokens."
        self.longest_generation = h("request_max_num_generation_tokens", help, counts)
        self.params_n = h("request_params_n", "Histogram of the n request parameter.", (1, 2, 5, 10, 20))
        help = "Histogram of the max_tokens request parameter."
        self.params_max_tokens = h("request_params_max_tokens", help, counts)

    def _declare_times(self, counts: Sequence[int]) -> None:
        h = self._histogram
        self.ttft = h("time_to_first_token_seconds", "Histogram of time to first token in seconds.", TTFT_BUCKETS_S)
        self.itl = h("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", TOKEN_BUCKETS_S)
        help = "Histogram of time_per_output_token_seconds per request."
        self.tpot = h("request_time_per_output_token_seconds", help, TOKEN_BUCKETS_S)
        help = "Histogram of e2e request latency in seconds."
        self.e2e = h("e2e_request_latency_seconds", help, REQUEST_BUCKETS_S)
        self.queue_time, self.inference_time, self.prefill_time, self.decode_time = (
            h(f"request_{of}_time_seconds", f"Histogram of time spent in {phase} phase for request.", REQUEST_BUCKETS_S)
            for of, phase in (
                ("queue", "WAITING"), ("inference", "RUNNING"), ("prefill", "PREFILL"), ("decode", "DECODE"),
            )
        )  # fmt: skip
        help = "Histogram of the number of times a request was preempted."
        self.request_preemptions = h("request_num_preemptions", help, (1, 2, 3, 4, 5, 10, 20))
        help = "Histogram of new KV tokens computed during prefill (excluding cached tokens)."
        self.prefill_computed = h("request_prefill_kv_computed_tokens", help, counts)
