"""``external.metrics.k8s.io`` as a Prometheus adapter serves it: the series of a metric, of whatever object.

Series of the gateway are served as they are. Of all others there is one value per scraped pod, with its name as a
label, as a query that sums nothing would find them; the autoscaler adds them up. Nothing found is an empty list,
which the autoscaler takes for an error, not for 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from fakes.clock import stamp
from fakes.kube.selectors import label_matcher
from fakes.kube.status import status_body
from fakes.metrics.custom_metrics import CustomMetrics, quantity
from fakes.metrics.gateway_scraper import PREFIX, GatewayScraper
from harness.kube.port import ApiError, Json

GROUP = "external.metrics.k8s.io"


class ExternalMetrics:
    group = GROUP
    version = "v1beta1"

    def __init__(self, metrics: CustomMetrics, gateway: GatewayScraper | None = None) -> None:
        self._metrics = metrics
        self._gateway = gateway

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
        if self._gateway is not None and metric.startswith(PREFIX):
            return 200, self._listed(self._of_gateway(self._gateway, namespace, metric))
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
        return 200, self._listed(items)

    def _of_gateway(self, gateway: GatewayScraper, namespace: str, metric: str) -> list[Json]:
        """Empty where the pipeline is broken: it is the same Prometheus."""
        scrape = None if self._metrics.blank else gateway.latest()
        value = scrape.value(metric) if scrape is not None else None
        if scrape is None or value is None:
            return []
        labels = {"namespace": namespace, "service": "gateway"}
        return [
            {
                "metricName": metric,
                "metricLabels": labels,
                "timestamp": stamp(self._metrics.dated(scrape)),
                "value": quantity(0.0 if self._metrics.empty_is_zero else value),
            }
        ]

    def _listed(self, items: list[Json]) -> Json:
        return {
            "kind": "ExternalMetricValueList",
            "apiVersion": f"{GROUP}/{self.version}",
            "metadata": {},
            "items": items,
        }
