"""The shape of a body: where an object, a list or a number is needed, anything else is 400 and not a crash later."""

from __future__ import annotations

from harness.kube.port import Json


def check_structure(obj: Json) -> None:
    del obj
