"""How long one engine step takes, by model and GPU.

    step = (floor^4 + (tok * T)^4 + (host * B)^4)^(1/4) + kv * K + req * B

T tokens computed in the step, K tokens of KV cache read by its decodes, B requests in it. ``floor`` is reading the
weights, ``tok`` computing a token once the step is compute-bound, ``host`` what the server's own CPU does for each
request meanwhile, which shows once it takes longer than the GPU. ``SOURCES`` says where each figure is from;
``benchmarks/latency_sweeps.py`` compares the profiles with what others have measured, and docs/fidelity.md has its
table. Latencies of tokens are never scaled.
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
    host_request_s: float = 0.0

    def step_s(self, tokens: int, kv_tokens: int, requests: int) -> float:
        compute = (self.floor_s**4 + (self.token_s * tokens) ** 4 + (self.host_request_s * requests) ** 4) ** 0.25
        return float(compute + self.kv_token_s * kv_tokens + self.request_s * requests)


REQUEST_S = 10e-6

PROFILES: dict[str, LatencyProfile] = {
    "llama-8b-l4": LatencyProfile(59e-3, 265e-6, 570e-9, REQUEST_S, 1_900, 256, 2048),
    "llama-8b-h100": LatencyProfile(6.4e-3, 20e-6, 51e-9, REQUEST_S, 28_600, 1024, 8192),
    "llama-8b-h100-slow-host": LatencyProfile(6.4e-3, 20e-6, 51e-9, REQUEST_S, 28_600, 1024, 8192, 720e-6),
    "llama-8b-a100-40": LatencyProfile(12.8e-3, 67e-6, 110e-9, REQUEST_S, 9_880, 256, 2048),
    "llama-8b-a100-80": LatencyProfile(10.2e-3, 67e-6, 84e-9, REQUEST_S, 28_600, 256, 2048),
    "llama-70b-fp8-h100-tp2": LatencyProfile(18.3e-3, 60e-6, 37e-9, 40e-6, 31_042, 1024, 8192),
    "llama-70b-h100-tp4": LatencyProfile(28.3e-3, 107e-6, 32e-9, 310e-6, 31_000, 1024, 8192),
    "llama-70b-h100-tp8": LatencyProfile(30.4e-3, 82e-6, 16e-9, 280e-6, 89_000, 1024, 8192),
    "llama-70b-a100-tp4": LatencyProfile(42.5e-3, 224e-6, 52e-9, 370e-6, 31_000, 256, 2048),
    "llama-70b-a100-tp8": LatencyProfile(43.8e-3, 154e-6, 26e-9, 370e-6, 89_000, 256, 2048),
}
_VIDUR = "floor and tok are Vidur's profiled linear operations of {} (CSV files of microsoft/vidur) over all layers"
_SPLITWISE = "floor, tok and req fit Splitwise's steps of a Llama 2 70B (vLLM of 2023; CSV of Mutinifni/splitwise-sim)"
_BYTES = "kv is the KV cache's bytes per token and GPU over the memory's bandwidth, times 1.3"
_BLOCKS = "blocks are what 0.92 of the memory leaves beside the weights and 2 GiB of activations"
SOURCES: dict[str, str] = {
    "llama-8b-l4": (
        "derived: floor is 16.1 GB of weights over 300 GB/s times 1.1, tok 16 GFLOP over half of 121 TFLOPS; "
        f"{_BYTES}; {_BLOCKS}"
    ),
    "llama-8b-h100": f"floor fits one stream of yobitel's InferenceBench (vLLM 0.21); tok as Vidur's of a 7B; {_BYTES}",
    "llama-8b-h100-slow-host": (
        "as llama-8b-h100, and host fits all of InferenceBench's sweep, whose server gave no more than 1,400 tokens/s"
    ),
    "llama-8b-a100-40": f"tok as {_VIDUR.format('an 8B, TP1')}; floor fits one stream of johnmusgrave's run; {_BYTES}",
    "llama-8b-a100-80": f"{_VIDUR.format('an 8B, TP1')}, rounded up for the CPU's part; {_BYTES}; {_BLOCKS}",
    "llama-70b-fp8-h100-tp2": (
        "all but blocks fit zivbeker42's NIM sweep (llm-guesstimator); blocks for an FP8 KV cache"
    ),
    "llama-70b-h100-tp4": f"{_SPLITWISE}; {_BYTES}; {_BLOCKS}",
    "llama-70b-h100-tp8": f"{_SPLITWISE}; {_BYTES}; {_BLOCKS}",
    "llama-70b-a100-tp4": f"{_SPLITWISE}; {_BYTES}; {_BLOCKS}",
    "llama-70b-a100-tp8": f"{_SPLITWISE}; {_BYTES}; {_BLOCKS}",
}
"""Sequence and token limits are vLLM's own defaults for the GPU (1024 and 8192 on an H100, else 256 and 2048)."""
DEFAULT_PROFILE = "llama-8b-h100"
