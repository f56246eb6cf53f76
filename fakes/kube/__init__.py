"""The embedded Kubernetes API: store, the port in process, and the HTTP server."""

from fakes.kube.local import LocalKube
from fakes.kube.store import Store

__all__ = ["LocalKube", "Store"]
