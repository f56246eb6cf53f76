"""Where a pod really listens. Its status carries an ordinary pod address; the real one is an annotation."""

from __future__ import annotations

from harness.kube.port import Json

LISTEN_ANNOTATION = "gpu-harness.dev/listen"


def listen_address(pod: Json) -> tuple[str, int] | None:
    """(host, port), or None while no container of the pod has been created or none of them listens."""
    text = (pod["metadata"].get("annotations") or {}).get(LISTEN_ANNOTATION)
    if not text:
        return None
    host, _, port = str(text).rpartition(":")
    return (host, int(port)) if host and port.isdigit() else None
