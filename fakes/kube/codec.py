"""Copies and bytes of JSON objects."""

from __future__ import annotations

import json
from typing import Any


def clone(value: Any) -> Any:
    """A deep copy; several times faster than copy.deepcopy."""
    if type(value) is dict:
        return {k: clone(v) for k, v in value.items()}
    if type(value) is list:
        return [clone(v) for v in value]
    return value


def ingest(value: Any) -> Any:
    """A deep copy of what a client sent, without the nulls: to the API server a null field is an absent one."""
    if isinstance(value, dict):
        return {k: ingest(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [ingest(v) for v in value]
    return value


def dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
