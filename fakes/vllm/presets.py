"""How long one engine step takes, by model and GPU.

    step = (floor^4 + (tok * T)^4)^(1/4) + kv * K + req * B

T tokens computed in the step, K tokens of KV cache read by its decodes, B requests in it. ``floor`` is reading the
weights, ``tok`` computing a token once the step is compute-bound. Sources and fit: one H100 70B sweep within 18 % of
inter-token latency; the other rows are derived, not checked against a sweep. Latencies of tokens are never scaled.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LatencyProfile:
    """Step-time constants and the capacity of one server; sequence and token limits are vLLM's own defaults there."""

    floor_s: float
    token_s: float
    kv_token_s: float
    request_s: float
    kv_blocks: int
    max_num_seqs: int
    max_num_batched_tokens: int

    def step_s(self, tokens: int, kv_tokens: int, requests: int) -> float:
        compute = (self.floor_s**4 + (self.token_s * tokens) ** 4) ** 0.25
        return float(compute + self.kv_token_s * kv_tokens + self.request_s * requests)


REQUEST_S = 10e-6

PROFILES: dict[str, LatencyProfile] = {
    "llama-8b-h100": LatencyProfile(6.4e-3, 20e-6, 51e-9, REQUEST_S, 28_600, 1024, 8192),
    "llama-8b-a100-40": LatencyProfile(12.8e-3, 67e-6, 110e-9, REQUEST_S, 9_880, 256, 2048),
    "llama-70b-fp8-h100-tp2": LatencyProfile(17.2e-3, 50e-6, 31e-9, REQUEST_S, 31_042, 1024, 8192),
    "llama-70b-h100-tp4": LatencyProfile(15e-3, 54e-6, 32e-9, REQUEST_S, 31_000, 1024, 8192),
}
DEFAULT_PROFILE = "llama-8b-h100"
