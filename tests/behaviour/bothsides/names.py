"""Names that mean the same on both sides: no random suffixes, no hashes, no uids, no name of the namespace."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bothsides.recording import Seen

from fakes.controllers.objects import controller_of
from harness.kube.port import ENDPOINT_SLICE, EVENT, POD, REPLICA_SET, STATEFUL_SET, Json

REVISION = "deployment.kubernetes.io/revision"
_EXAMPLES = re.compile(r"\(e\.g\. \[([^\]]*)\]\)")
"""Examples come in the order of a Go map: any."""
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Names:
    """``alias``: of any object seen; several pods of one ReplicaSet share theirs. ``text``: the same for free text."""

    def __init__(self, seen: Iterable[Seen], namespace: str, alike: tuple[str, ...] = ()) -> None:
        """``alike``: nodes between which the scheduler may choose as it likes."""
        self._namespace = namespace
        self._alike = alike
        self._aliases: dict[tuple[str, str], str] = {}
        listed = [s for s in seen if s.resource != EVENT]
        for event in sorted(listed, key=lambda s: s.resource != REPLICA_SET):  # pods are named after their ReplicaSets
            name = event.object["metadata"]["name"]
            self._aliases.setdefault((event.resource.kind, name), self._alias(event.resource.kind, event.object))
        by_length = sorted(((name, alias) for (_, name), alias in self._aliases.items()), key=lambda p: -len(p[0]))
        self._texts = [(name, alias) for name, alias in by_length if name != alias]

    def alias(self, kind: str, name: str) -> str:
        if kind == "Namespace":
            return "of the scenario"
        return self._aliases.get((kind, name), name)

    def text(self, text: str) -> str:
        for name, alias in self._texts:
            text = text.replace(name, alias)
        text = _UID.sub("UID", text)
        for node in self._alike:
            text = text.replace(f" {node}", " NODE")
        text = _EXAMPLES.sub(lambda found: f"(e.g. [{' '.join(sorted(found[1].split()))}])", text)
        return text.replace(self._namespace, "NAMESPACE")

    def _alias(self, kind: str, obj: Json) -> str:
        meta = obj["metadata"]
        name = str(meta["name"])
        owner = controller_of(obj)
        if owner is None:
            base = str(meta.get("generateName") or "")
            return f"{base.rstrip('-')}*" if base and name.startswith(base) else name
        if kind == REPLICA_SET.kind:
            return f"{owner['name']}@{(meta.get('annotations') or {}).get(REVISION, '?')}"
        if owner["kind"] == STATEFUL_SET.kind:
            return name  # by its number
        if kind in (POD.kind, ENDPOINT_SLICE.kind):
            return f"{self._aliases.get((owner['kind'], owner['name']), owner['name'])}*"
        return name
