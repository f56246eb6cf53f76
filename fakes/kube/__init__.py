"""The embedded Kubernetes API: store, the port in process, and the HTTP server."""

from fakes.kube.local import LocalKube
from fakes.kube.server import AggregatedApi, make_app
from fakes.kube.store import Store

__all__ = ["AggregatedApi", "LocalKube", "Store", "make_app"]
