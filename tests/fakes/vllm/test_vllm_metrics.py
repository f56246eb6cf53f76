"""/metrics against what a real server exports while idle."""

from __future__ import annotations

import pytest

from fakes.metrics.parse import parse
from fakes.vllm.metrics import EngineMetrics

CAPTURED = """\
vllm:num_requests_running{engine="0",model_name="tiny"} 0.0
vllm:num_requests_waiting{engine="0",model_name="tiny"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="capacity"} 0.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="deferred"} 0.0
vllm:engine_sleep_state{engine="0",model_name="tiny",sleep_state="awake"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.0
vllm:prefix_cache_queries_total{engine="0",model_name="tiny"} 0.0
vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 0.0
vllm:num_preemptions_total{engine="0",model_name="tiny"} 0.0
vllm:prompt_tokens_total{engine="0",model_name="tiny"} 0.0
vllm:generation_tokens_total{engine="0",model_name="tiny"} 0.0
vllm:request_success_total{engine="0",finished_reason="repetition",model_name="tiny"} 0.0
vllm:admission_rejections_total{model_name="tiny",reason="max_num_queued_reqs"} 0.0
vllm:request_prompt_tokens_bucket{engine="0",le="2000.0",model_name="tiny"} 0.0
vllm:iteration_tokens_total_bucket{engine="0",le="16384.0",model_name="tiny"} 0.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="tiny"} 0.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="tiny"} 0.0
vllm:inter_token_latency_seconds_bucket{engine="0",le="0.025",model_name="tiny"} 0.0
vllm:request_time_per_output_token_seconds_count{engine="0",model_name="tiny"} 0.0
vllm:e2e_request_latency_seconds_bucket{engine="0",le="7680.0",model_name="tiny"} 0.0
vllm:request_queue_time_seconds_sum{engine="0",model_name="tiny"} 0.0
vllm:request_prefill_time_seconds_sum{engine="0",model_name="tiny"} 0.0
vllm:request_decode_time_seconds_sum{engine="0",model_name="tiny"} 0.0
"""

TYPES = """\
# TYPE vllm:num_requests_waiting gauge
# TYPE vllm:request_success_total counter
# TYPE vllm:request_success_created gauge
# TYPE vllm:iteration_tokens_total histogram
# TYPE vllm:time_to_first_token_seconds histogram
"""


def idle_lines() -> set[str]:
    metrics = EngineMetrics("tiny", max_model_len=2048, cache_config={"block_size": "16"}, created_s=1795970085.6031)
    return set(metrics.text().splitlines())


@pytest.mark.parametrize("line", (CAPTURED + TYPES).splitlines())
def test_an_idle_server_says_the_same(line: str) -> None:
    assert line in idle_lines()


def test_what_newer_versions_dropped_is_not_there() -> None:
    names = {sample.name for sample in parse("\n".join(idle_lines()))}
    assert not names & {"vllm:gpu_cache_usage_perc", "vllm:time_per_output_token_seconds_count"}
    assert not any(name.startswith("http_requests") for name in names)


def test_requests_by_handler_appear_with_the_first_one() -> None:
    metrics = EngineMetrics("tiny", max_model_len=2048, cache_config={}, created_s=0.0)
    metrics.http("/v1/chat/completions", "POST", 200)
    metrics.http("/v1/chat/completions", "POST", 200)
    assert 'http_requests_total{handler="/v1/chat/completions",method="POST",status="2xx"} 2.0' in metrics.text()
