"""Every kind once round: created, read, listed, printed, updated, deleted."""

from __future__ import annotations

from case import TABLE, Case, Explained, case, delete, get, post, setup
from wire_bodies import KINDS, name_of


def created() -> list[Case]:
    return [
        case(f"create and get a {kind}", post(path, body), get(f"{path}/{name_of(body)}"), pods=kind == "Pod")
        for kind, (path, body) in KINDS.items()
    ]


def deleted() -> list[Case]:
    return [
        case(
            f"delete a {kind}, and again",
            setup("POST", path, body),
            delete(f"{path}/{name_of(body)}"),
            *([] if kind == "Namespace" else [get(f"{path}/{name_of(body)}"), delete(f"{path}/{name_of(body)}")]),
            pods=kind == "Pod",
            error=True,
            explained=PROTECTED if kind == "PodGroup" else (),
        )
        for kind, (path, body) in KINDS.items()
    ]


_WHY = (
    "the finalizer of a PodGroup is taken off by a controller, which does not run beside the real API server here; the "
    "embedded one does it at once"
)
PROTECTED = (Explained("[1].*", _WHY), Explained("[2].*", _WHY))


def printed() -> list[Case]:
    return [
        case(
            f"a Table of one {kind}",
            setup("POST", path, body),
            get(f"{path}/{name_of(body)}", accept=TABLE, drop=("columnDefinitions.*.description",)),
            pods=kind == "Pod",
        )
        for kind, (path, body) in KINDS.items()
    ]


def refused() -> list[Case]:
    return [
        case(
            f"create a {kind} that is there",
            setup("POST", path, body),
            post(path, body),
            pods=kind == "Pod",
            error=True,
        )
        for kind, (path, body) in KINDS.items()
    ]


CASES = [*created(), *deleted(), *printed(), *refused()]
