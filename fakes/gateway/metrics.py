"""The gateway's own /metrics."""

from __future__ import annotations

from collections import Counter

from fakes.gateway.router import Router
from fakes.metrics.exposition import Family, Value, exposition

_USER = b'"user":"'
_USER_WITHIN = 400
"""Bytes at a body's end in which it stands, as the official clients write it: no body is parsed for a counter."""


class GatewayMetrics:
    """Counters of the forwarder; gauges are read from the router when asked."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.held = 0
        self.answered: Counter[tuple[str, int]] = Counter()
        """By pod and status; the pod is empty for the gateway's own 502 and 503."""
        self.cut: Counter[str] = Counter()
        """Answers that broke off in the middle, by pod."""
        self.client_left: Counter[str] = Counter()
        self.retries = 0
        self.by_user: Counter[str] = Counter()
        self.bytes_by_user: Counter[str] = Counter()
        """Of requests that name a ``user``, which is what a gateway counts and limits tenants by."""

    def came(self, body: bytes) -> None:
        at = body.rfind(_USER, max(0, len(body) - _USER_WITHIN))
        if at < 0:
            return
        name = body[at + len(_USER) :].partition(b'"')[0].decode("utf-8", "replace")
        self.by_user[name] += 1
        self.bytes_by_user[name] += len(body)

    def text(self, router: Router, queued: int = 0) -> str:
        backends = sorted(router.backends.values(), key=lambda b: b.pod)
        answered = [
            Value([("pod", pod), ("code", str(status))], n) for (pod, status), n in sorted(self.answered.items())
        ]
        families = [
            Family("gateway_requests_in_flight", "gauge", "Requests being forwarded.", [Value([], self.in_flight)]),
            Family("gateway_requests_queued", "gauge", "Requests that wait for a replica.", [Value([], queued)]),
            Family("gateway_requests_held", "gauge", "Requests that wait for any replica.", [Value([], self.held)]),
            Family(
                "gateway_pod_requests_in_flight", "gauge", "Requests being forwarded, by pod.",
                [Value([("pod", b.pod)], b.in_flight) for b in backends],
            ),
            Family(
                "gateway_pod_routable", "gauge", "1 while new requests may go to the pod.",
                [Value([("pod", b.pod), ("node", b.node)], int(b.routable)) for b in backends],
            ),
            Family("gateway_requests_total", "counter", "Answers begun, by pod and status.", answered),
            Family("gateway_retries_total", "counter", "Requests sent on after a refusal.", [Value([], self.retries)]),
            Family("gateway_upstream_cut_total", "counter", "Answers that a pod broke off.", _by_pod(self.cut)),
            Family(
                "gateway_client_left_total", "counter", "Requests whose client left first.", _by_pod(self.client_left)
            ),
            Family("gateway_user_requests_total", "counter", "Requests that came, by user.", _by(self.by_user, "user")),
            Family(
                "gateway_user_request_bytes_total", "counter", "Sizes of requests that came, by user.",
                _by(self.bytes_by_user, "user"),
            ),
        ]  # fmt: skip
        return exposition(families)


def _by_pod(counter: Counter[str]) -> list[Value]:
    return _by(counter, "pod")


def _by(counter: Counter[str], label: str) -> list[Value]:
    return [Value([(label, name)], n) for name, n in sorted(counter.items())]
