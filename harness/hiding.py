"""Secrets in objects of other people: what may stand in a pod's environment, its arguments or a Secret is not kept.

By the name under which it stands, for nobody knows a secret by its looks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from harness.kube.port import Json

HIDDEN = "[hidden]"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The manifest once more, as text."""
_NAME = re.compile(r"(^|[-_.])(token|secret|passw(or)?d|credentials?|authorization|(api|access|private)?key)$", re.I)


def without_secrets(obj: Json) -> Json:
    """The object itself where there is nothing to hide, else a copy without it."""
    if obj.get("kind") == "Secret":
        shown: Json = {part: _all_hidden(obj[part]) for part in ("data", "stringData") if part in obj}
        return obj | shown
    meta, spec = obj.get("metadata"), obj.get("spec")
    found = obj
    if isinstance(meta, dict) and LAST_APPLIED in (meta.get("annotations") or ()):
        annotations = {k: v for k, v in meta["annotations"].items() if k != LAST_APPLIED}
        found = found | {"metadata": {**meta, "annotations": annotations}}
    if isinstance(spec, dict) and (clean := _pod_spec(spec)) is not spec:
        found = found | {"spec": clean}
    template = spec.get("template") if isinstance(spec, dict) else None
    if isinstance(template, dict) and isinstance(template.get("spec"), dict):
        clean = _pod_spec(template["spec"])
        if clean is not template["spec"]:
            found = found | {"spec": {**(spec or {}), "template": template | {"spec": clean}}}
    return found


def experiment_without_secrets(experiment: Json) -> Json:
    """An experiment of Chaos Toolkit without the secrets that people wrote into it: all values of its ``secrets``, and
    in its configuration, and among headers of a provider, those that are named like one. What is read from the
    environment or a vault only names it."""
    shown: Json = {}
    groups = experiment.get("secrets")
    if isinstance(groups, dict):
        shown["secrets"] = {
            group: {name: value if isinstance(value, dict) else HIDDEN for name, value in members.items()}
            if isinstance(members, dict)
            else members
            for group, members in groups.items()
        }
    if isinstance(experiment.get("configuration"), dict):
        shown["configuration"] = _named_hidden(experiment["configuration"])
    clean: Json = {key: _headers_hidden(value) for key, value in (experiment | shown).items()}
    return clean


def _named_hidden(values: Json) -> Json:
    return {k: HIDDEN if isinstance(v, str) and _NAME.search(str(k)) else v for k, v in values.items()}


def _headers_hidden(value: Any) -> Any:
    match value:
        case dict():
            return {
                k: _named_hidden(v) if k == "headers" and isinstance(v, dict) else _headers_hidden(v)
                for k, v in value.items()
            }
        case list():
            return [_headers_hidden(item) for item in value]
        case _:
            return value


def _all_hidden(values: Any) -> Json:
    return dict.fromkeys(values or (), HIDDEN)


def _pod_spec(spec: Json) -> Json:
    changed: Json = {}
    for part in ("containers", "initContainers"):
        there = spec.get(part)
        if isinstance(there, list):
            clean = [_container(c) if isinstance(c, dict) else c for c in there]
            if any(a is not b for a, b in zip(clean, there, strict=True)):
                changed[part] = clean
    return spec | changed if changed else spec


def _container(container: Json) -> Json:
    changed: Json = {}
    env = container.get("env")
    if isinstance(env, list) and any(_tells(e) for e in env):
        changed["env"] = [e | {"value": HIDDEN} if _tells(e) else e for e in env]
    for part in ("args", "command"):
        words = container.get(part)
        if isinstance(words, list) and (clean := _words(words)) != words:
            changed[part] = clean
    return container | changed if changed else container


def _tells(entry: Any) -> bool:
    return isinstance(entry, dict) and bool(entry.get("value")) and bool(_NAME.search(str(entry.get("name", ""))))


def _words(words: Sequence[Any]) -> list[Any]:
    """``--api-key X`` and ``--api-key=X``."""
    clean: list[Any] = []
    follows = False
    for word in words:
        text = str(word)
        flag, equals, _ = text.partition("=")
        names = text.startswith("-") and bool(_NAME.search(flag))
        clean.append(HIDDEN if follows else f"{flag}={HIDDEN}" if names and equals else word)
        follows = names and not equals
    return clean
