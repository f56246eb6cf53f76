"""Requests of a story, what the model servers' own book says of them, and the samples that were scraped meanwhile."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from told_cluster import ToldCluster
from told_objects import Json

from harness.history.tables import REQUEST_COLUMNS, LedgerEntry, Outcome


@dataclass
class ToldTraffic(ToldCluster):
    """Requests go to the pods of the told cluster, or to nobody."""

    _requests: list[Json] = field(default_factory=list)
    _samples: list[tuple[int, str, str, str, float]] = field(default_factory=list)
    _ledger: list[LedgerEntry] | None = None

    def request(
        self,
        at_s: float,
        pod: str | None = None,
        outcome: Outcome = Outcome.OK,
        *,
        lasts_s: float = 5.0,
        ttft_ms: float = 200.0,
        lag_ms: float = 1.0,
        output_tokens: int = 20,
        node: str | None = None,
        status: int | None = 200,
        reason: str | None = None,
        **cells: Any,
    ) -> int:
        """Planned for ``at_s``, first token ``ttft_ms`` after that, end ``lasts_s`` scenario seconds after that."""
        intended = self.ns(at_s)
        sent = intended + round(lag_ms * 1e6)
        end = self.ns(at_s + lasts_s)
        token = min(intended + round(ttft_ms * 1e6), end)
        row: Json = dict.fromkeys(REQUEST_COLUMNS)
        row |= {"request_id": len(self._requests), "attempt": 1, "intended_ns": intended, "chunks": output_tokens}
        row |= {"planned_prompt_tokens": 100, "planned_output_tokens": output_tokens, "done": False, "reused": False}
        row |= {"outcome": str(outcome), "reason": reason, "tenant": "t", "session": ""}
        if outcome is not Outcome.NOT_SENT:
            row |= {"sent_ns": sent, "connected_ns": sent, "end_ns": end, "pod": pod}
            row["node"] = node or self._nodes.get(pod or "")
        if pod is not None and outcome is not Outcome.NOT_SENT:
            row |= {"headers_ns": token, "first_chunk_ns": token, "first_token_ns": token, "last_token_ns": end}
            row |= {"status": status, "gap_max_ns": (end - token) // max(1, output_tokens - 1)}
        if outcome is Outcome.OK:
            row |= {"output_tokens": output_tokens, "prompt_tokens": 100, "finish_reason": "length", "done": True}
        self._requests.append(row | cells)
        return int(row["request_id"])

    def served(
        self, request_id: int, pod: str, tokens: int = 20, finish: str | None = "length", *, closed: bool = True
    ) -> None:
        """A line of the fakes' own book; a story without any has no such book."""
        self._ledger = self._ledger or []
        sent = {"sent_tokens": tokens, "sent_events": tokens, "finish": finish} if closed else {}
        self._ledger.append(LedgerEntry(2 * len(self._ledger), pod, f"7-{request_id}", 100, closed, **sent))

    def traffic(self, from_s: float, until_s: float, every_s: float, pods: tuple[str, ...], **cells: Any) -> None:
        at_s, turn = from_s, 0
        while at_s < until_s:
            self.request(at_s, pods[turn % len(pods)], **cells)
            at_s, turn = at_s + every_s, turn + 1

    def sample(self, at_s: float, source: str, name: str, value: float, **labels: str) -> None:
        text = json.dumps(labels, sort_keys=True, separators=(",", ":"))
        self._samples.append((self.ns(at_s), source, name, text, value))

    def waiting(self, at_s: float, **pods: float) -> None:
        for pod, value in pods.items():
            self.sample(at_s, "custom.metrics", "vllm_num_requests_waiting", value, pod=pod.replace("_", "-"))

    def stall(self, ends_s: float, stall_s: float) -> None:
        self.sample(ends_s, "machine", "stall_s", stall_s)
