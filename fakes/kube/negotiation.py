"""Which form of an answer a client takes: the object as it is, a Table of it, or its metadata alone."""

from __future__ import annotations

import enum

from fakes.kube.status import failure

_TYPES = frozenset({"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "*/*"})
_LISTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_META = "meta.k8s.io"


class Form(enum.Enum):
    WHOLE = "whole"
    TABLE = "table"
    METADATA = "metadata"


def form_of(accept: str) -> Form:
    """The first that is served, in the client's order. Raises 406 where there is none.

    YAML and protobuf are taken as JSON, which is what every answer is in.
    """
    if not accept:
        return Form.WHOLE
    known = False
    for part in accept.split(","):
        kind, *rest = (p.strip() for p in part.split(";"))
        if kind not in _TYPES:
            continue
        known = True
        parameters = dict(p.split("=", 1) for p in rest if "=" in p)
        wanted = parameters.get("as")
        if wanted is None:
            return Form.WHOLE
        if parameters.get("g") == _META and parameters.get("v") in ("v1", "v1beta1"):
            if wanted == "Table":
                return Form.TABLE
            if wanted in ("PartialObjectMetadata", "PartialObjectMetadataList"):
                return Form.METADATA
    if known:
        raise failure(406, "NotAcceptable", f"only the following media types are accepted: {_LISTED}")
    raise failure(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {_LISTED}", {})
