"""``external.metrics.k8s.io`` as a Prometheus adapter serves it: the series of a metric, of whatever object.

One value per scraped pod, labelled with its name, as a query that sums nothing would find them; the autoscaler adds
them up. Nothing found is an empty list, which the autoscaler takes for an error, not for 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from fakes.clock import stamp
from fakes.kube.selectors import label_matcher
from fakes.kube.status import status_body
from fakes.metrics.custom_metrics import CustomMetrics, quantity
from harness.kube.port import ApiError, Json

GROUP = "external.metrics.k8s.io"


class ExternalMetrics:
    group = GROUP
    version = "v1beta1"

    def __init__(self, metrics: CustomMetrics) -> None:
        self._metrics = metrics

    @property
    def resources(self) -> list[Json]:
        return [
            {
                "name": name,
                "singularName": "",
                "namespaced": True,
                "kind": "ExternalMetricValueList",
                "verbs": ["get"],
            }
            for name in self._metrics.names()
        ]

    async def handle(self, path: str, query: Mapping[str, str]) -> tuple[int, Json]:
        """``path``: namespaces/NS/METRIC."""
        parts = path.strip("/").split("/")
        if len(parts) != 3 or parts[0] != "namespaces":
            return 404, status_body(404, "NotFound", "the server could not find the requested resource")
        _, namespace, metric = parts
        try:
            matches = label_matcher(query.get("labelSelector", ""))
            values = await self._metrics.pod_metric(namespace, "", metric)
        except ApiError as error:
            return error.status, dict(error.body)
        items = [
            {"metricName": metric, "metricLabels": labels, "timestamp": stamp(v.t), "value": quantity(v.value)}
            for v, labels in ((v, {"namespace": namespace, "pod": v.pod}) for v in values)
            if matches is None or matches(labels)
        ]
        return 200, {
            "kind": "ExternalMetricValueList",
            "apiVersion": f"{GROUP}/{self.version}",
            "metadata": {},
            "items": items,
        }
