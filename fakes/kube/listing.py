"""LIST over HTTP: selection, resourceVersion rules, and pages that stay one snapshot."""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Sequence

from aiohttp import web

from fakes.kube.api import Api
from fakes.kube.negotiation import Form, form_of
from fakes.kube.requests import Target, integer
from fakes.kube.selectors import Predicate
from fakes.kube.shown import answer, joined, partial_list
from fakes.kube.status import (
    bad_option,
    bad_request,
    bad_value,
    expired,
    failure,
    forbidden_field,
    unsupported,
    version_too_large,
)
from fakes.kube.store import Stored
from fakes.kube.tables import table
from harness.kube.port import ApiError, Json

_SNAPSHOTS = 64


class Listing:
    """One per server. ``continue`` tokens stand for snapshots that it keeps; the oldest are forgotten first."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._snapshots: OrderedDict[str, tuple[Sequence[Stored], int]] = OrderedDict()
        self._next_snapshot = 0

    def selection(self, request: web.Request, target: Target) -> Predicate | None:
        fields = request.query.get("fieldSelector", "")
        if target.name:
            fields = f"metadata.name={target.name}" + (f",{fields}" if fields else "")
        return self._api.predicate(target.kind.resource, request.query.get("labelSelector", ""), fields)

    def answer(self, request: web.Request, target: Target) -> web.Response:
        kind, limit, token = target.kind, integer(request, "limit") or 0, request.query.get("continue", "")
        form = form_of(request.headers.get("Accept", ""))
        match = self.selection(request, target)
        self._check_match(request, token)
        if token:
            found, version, snapshot = self._resumed(token)
        else:
            self._check_version(request)
            found, version = self._api.list(kind.resource, target.namespace, match), self._api.store.revision
            snapshot = ""
        meta: Json = {"resourceVersion": str(version)}
        if 0 < limit < len(found):
            found, rest = found[:limit], found[limit:]
            meta["continue"] = self._kept(rest, version, snapshot)
            if match is None:  # nobody has counted what a selector would leave
                meta["remainingItemCount"] = len(rest)
        if form is Form.METADATA:
            return answer(partial_list(kind, found, meta))
        if form is Form.TABLE:
            include = request.query.get("includeObject", "Metadata")
            return answer(table(kind, found, self._api.store.wall.now(), include, meta))
        if kind.custom:
            meta.setdefault("continue", "")  # written even where it says nothing
        return answer(joined(kind, found, meta))

    def listed(self, request: web.Request, target: Target, found: Sequence[Stored]) -> web.Response:
        """What a deletecollection answers: the objects that it deleted."""
        meta: Json = {"resourceVersion": str(self._api.store.revision)}
        return answer(joined(target.kind, found, meta))

    def _check_match(self, request: web.Request, token: str) -> None:
        if "sendInitialEvents" in request.query:
            raise bad_option(
                "ListOptions", forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list")
            )
        match, version = request.query.get("resourceVersionMatch", ""), request.query.get("resourceVersion", "")
        if match and token:
            raise bad_option(
                "ListOptions",
                forbidden_field("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"),
            )
        if token and version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        if match and not version:
            raise bad_option(
                "ListOptions",
                forbidden_field(
                    "resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"
                ),
            )
        if match and match not in ("Exact", "NotOlderThan"):
            raise bad_option("ListOptions", unsupported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""]))
        if match == "Exact" and version == "0":
            text = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            raise bad_option("ListOptions", forbidden_field("resourceVersionMatch", text))

    def _check_version(self, request: web.Request) -> None:
        text = request.query.get("resourceVersion", "")
        if not text:
            return
        wanted = parsed_version(text)
        current = self._api.store.revision
        if wanted > current:
            raise version_too_large(wanted, current)
        if request.query.get("resourceVersionMatch") == "Exact" and wanted != current:
            raise expired("The resourceVersion for the provided list is too old.")

    def _kept(self, rest: Sequence[Stored], version: int, old: str) -> str:
        self._snapshots.pop(old, None)
        self._next_snapshot += 1
        key = str(self._next_snapshot)
        self._snapshots[key] = rest, version
        while len(self._snapshots) > _SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return base64.urlsafe_b64encode(json.dumps({"v": "meta.k8s.io/v1", "snapshot": key}).encode()).decode()

    def _resumed(self, token: str) -> tuple[Sequence[Stored], int, str]:
        try:
            key = json.loads(base64.urlsafe_b64decode(token.encode()))["snapshot"]
        except (ValueError, KeyError, TypeError) as e:
            raise bad_request(f"invalid continue token: continue key is not valid: {_why_no_token(token, e)}") from e
        found = self._snapshots.get(key) if isinstance(key, str) else None
        if found is None:
            raise expired(
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter."
            )
        return *found, key


def _why_no_token(token: str, error: Exception) -> str:
    alphabet = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    place = next((i for i, c in enumerate(token) if c not in alphabet), None)
    if place is not None:
        return f"illegal base64 data at input byte {place}"
    return f"the token was not made by this server ({error})"


def parsed_version(text: str) -> int:
    if text.isascii() and text.isdigit():
        return int(text)
    raise bad_request_for_version(text)


def bad_request_for_version(text: str) -> ApiError:
    cause = bad_value("resourceVersion", text, f'strconv.ParseUint: parsing "{text}": invalid syntax')
    return failure(
        400, "BadRequest", f"invalid resource version: {cause}",
    )  # fmt: skip
