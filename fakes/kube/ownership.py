"""metadata.managedFields: who last wrote which field, kept as the real server keeps it.

Per write the cost is that of what has changed: parts that old and new version share are skipped by identity, and an
entry that loses nothing keeps its very tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fakes.kube.field_trees import KNOWN, LEAF, Tree, difference, interned, union, without
from fakes.kube.fieldsets import born, compare
from fakes.kube.kinds import Kind
from harness.kube.port import Json

_SERVERS = ("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
            "resourceVersion")  # fmt: skip
_STRIPPED = KNOWN.constant(
    {"f:apiVersion": LEAF, "f:kind": LEAF, "f:metadata": {".": LEAF} | {f"f:{name}": LEAF for name in _SERVERS}}
)
_STATUS = KNOWN.constant({"f:status": LEAF})
_MOST_UPDATERS = 10
_ANCIENT = "ancient-changes"


@dataclass(frozen=True, slots=True)
class Writer:
    """``operation`` is Update or Apply."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""


def writer_of(entry: Json) -> Writer:
    """Applies of several versions are one writer, updates are not."""
    operation = entry.get("operation", "")
    version = "" if operation == "Apply" else entry.get("apiVersion", "")
    return Writer(entry.get("manager", ""), operation, version, entry.get("subresource", ""))


def entry_of(writer: Writer, api_version: str, tree: Tree, stamp: str) -> Json:
    found: Json = {
        "manager": writer.manager,
        "operation": writer.operation,
        "apiVersion": api_version,
        "time": stamp,
        "fieldsType": "FieldsV1",
        "fieldsV1": tree,
    }
    if writer.subresource:
        found["subresource"] = writer.subresource
        if writer.subresource == "scale":
            del found["time"]  # as on a real server, which writes these entries without one
    return found


def stripped(tree: Tree | None) -> Tree | None:
    """Less what is nobody's: the identity of the object and what the server writes."""
    return difference(tree, _STRIPPED)


def track(kind: Kind, old: Json | None, new: Json, writer: Writer, stamp: str) -> None:
    """Writes the entries of ``new`` after an update by ``writer``; ``old`` is None for a create."""
    entries = (old or {}).get("metadata", {}).get("managedFields") or []
    entries = _given(new, entries)
    if not entries and old is not None:
        new["metadata"].pop("managedFields", None)
        return  # nobody tracked it so far, and nobody starts in the middle
    KNOWN.tidy()
    changed, removed = born(kind.type, new) if old is None else compare(kind.type, old, new)
    hidden = reset_fields(kind, writer.subresource)
    if hidden is not None:
        changed = without(changed, hidden)
        removed = without(removed, hidden)
    changed = without(changed, _OWN)
    removed = without(removed, _OWN)
    new["metadata"]["managedFields"] = _written(entries, changed, removed, writer, stamp)
    if not new["metadata"]["managedFields"]:
        del new["metadata"]["managedFields"]


_OWN = KNOWN.constant({"f:metadata": {"f:managedFields": LEAF, "f:resourceVersion": LEAF, "f:generation": LEAF}})


def _given(new: Json, entries: list[Json]) -> list[Json]:
    """An update may state the entries itself: an empty list forgets them all."""
    stated = new["metadata"].get("managedFields")
    if stated is None or stated is entries:
        return entries
    if stated in ([], [{}]):
        del new["metadata"]["managedFields"]
        return []
    return stated if all(_is_entry(e) for e in stated) else entries


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.get("operation") in ("Apply", "Update")
        and bool(entry.get("apiVersion"))
        and entry.get("fieldsType") == "FieldsV1"
        and isinstance(entry.get("fieldsV1"), dict)
    )


def _is_by(entry: Json, writer: Writer) -> bool:
    return (
        entry.get("manager", "") == writer.manager
        and entry.get("subresource", "") == writer.subresource
        and entry.get("operation", "") == writer.operation
        and (writer.operation == "Apply" or entry.get("apiVersion", "") == writer.api_version)
    )


def _written(entries: list[Json], changed: Tree | None, removed: Tree | None, writer: Writer, stamp: str) -> list[Json]:
    kept: list[Json] = []
    own: Tree | None = None
    own_stamp, mine = stamp, stripped(changed)
    for entry in entries:
        before = entry["fieldsV1"]
        if _is_by(entry, writer):
            if mine is not None and removed is None and difference(mine, before) is None:
                kept.append(
                    entry_of(writer, writer.api_version, before, stamp)
                )  # it owned all of this before: no set to be made
                mine = None
                continue
            own, own_stamp = difference(difference(before, changed), removed), entry.get("time", stamp)
            continue
        after = difference(difference(before, changed), removed)
        if after is before:
            kept.append(entry)
        elif after is not None:
            kept.append(entry | {"fieldsV1": after})
    if mine is not None:
        own, own_stamp = union(own, mine), stamp
    if own is not None:
        kept.append(entry_of(writer, writer.api_version, interned(own) or LEAF, own_stamp))
    return ordered(_capped(kept))


def ordered(entries: Iterable[Json]) -> list[Json]:
    entries = list(entries)
    if len(entries) < 2:
        return entries
    return sorted(
        entries,
        key=lambda e: (e["operation"], e.get("time", ""), e["manager"], e["apiVersion"], e.get("subresource", "")),
    )


def _capped(entries: list[Json]) -> list[Json]:
    """Of more than ten updaters the oldest become one."""
    if len(entries) <= _MOST_UPDATERS:
        return entries
    updaters = sorted(
        (e for e in entries if e["operation"] == "Update"), key=lambda e: (e.get("time", ""), e["manager"])
    )
    over = len(updaters) - _MOST_UPDATERS
    if over <= 0:
        return entries
    merged, stamp, version = None, "", updaters[0]["apiVersion"]
    gone = [e for e in updaters if e["apiVersion"] == version][: over + 1]
    for entry in gone:
        merged, stamp = union(merged, entry["fieldsV1"]), entry.get("time", "")
    ancient = entry_of(Writer(_ANCIENT, "Update", version), version, merged or LEAF, stamp)
    return [e for e in entries if not any(e is g for g in gone)] + [ancient]


def reset_fields(kind: Kind, subresource: str) -> Tree | None:
    """What a write through this door cannot change, so cannot come to own."""
    if subresource == "status":
        return interned(kind.reset_by_status)
    return _STATUS if kind.status else None
