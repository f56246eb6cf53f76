"""The gateway's own /metrics."""

from __future__ import annotations

from collections import Counter

from fakes.gateway.router import Router
from fakes.metrics.exposition import Family, Value, exposition


class GatewayMetrics:
    """Counters of the forwarder; gauges are read from the router when asked."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.answered: Counter[tuple[str, int]] = Counter()
        """By pod and status; the pod is empty for the gateway's own 502 and 503."""
        self.cut: Counter[str] = Counter()
        """Answers that broke off in the middle, by pod."""
        self.client_left: Counter[str] = Counter()
        self.retries = 0

    def text(self, router: Router) -> str:
        backends = sorted(router.backends.values(), key=lambda b: b.pod)
        answered = [
            Value([("pod", pod), ("code", str(status))], n) for (pod, status), n in sorted(self.answered.items())
        ]
        families = [
            Family("gateway_requests_in_flight", "gauge", "Requests being forwarded.", [Value([], self.in_flight)]),
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
        ]  # fmt: skip
        return exposition(families)


def _by_pod(counter: Counter[str]) -> list[Value]:
    return [Value([("pod", pod)], n) for pod, n in sorted(counter.items())]
