"""``${name}`` as Chaos Toolkit reads it: from ``configuration`` and the second level of ``secrets``.

Chaos Toolkit leaves an unknown name as it stands, in silence; here it is refused. Values that are known before the run
(plain ones and those of the environment) are put into our own actions' arguments, so that these can be checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.spec.document import Document, KeyPath, did_you_mean
from harness.spec.mistakes import show

# The grammar of string.Template, which Chaos Toolkit uses: $$ is an escape, and only ASCII names are names.
_PATTERN = re.compile(r"\$(?:(?P<escaped>\$)|(?P<named>[_a-zA-Z][_a-zA-Z0-9]*)|\{(?P<braced>[^{}]*)\})")
_NAME = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")


@dataclass(frozen=True, slots=True)
class Variables:
    """What may be named. ``values`` are known now; ``late`` are known by name only (secrets, values from probes)."""

    values: Mapping[str, Any]
    late: frozenset[str]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted({*self.values, *self.late}))

    def check(self, data: object, document: Document, at: KeyPath) -> None:
        """Refuses every ``${name}`` that Chaos Toolkit would leave as it stands."""
        for where, text in _texts(data, at):
            for match in _PATTERN.finditer(text):
                name = match["braced"]
                if name is None or name in self.values or name in self.late:
                    continue
                if not _NAME.fullmatch(name):
                    hint = (
                        "a name has letters, digits and '_' only; Chaos Toolkit would leave anything else as it stands"
                    )
                    raise document.mistake(where, f"'${{{name}}}' is not a variable", hint)
                hint = f"{did_you_mean(name, self.names)}; define it under configuration or secrets"
                raise document.mistake(where, f"the variable ${{{name}}} is not defined", hint)

    @staticmethod
    def check_absent(data: object, document: Document, at: KeyPath) -> None:
        """For places in which nothing is substituted, so that a variable would be taken literally."""
        for where, text in _texts(data, at):
            if match := re.search(r"\$\{[^{}]*\}", text):
                raise document.mistake(where, f"{match[0]} is not replaced in the extension block", "write the value")

    def fill(self, data: object, document: Document, at: KeyPath) -> object:
        """``data`` with known values put in. As in Chaos Toolkit, a text that is one variable takes that one's type."""
        match data:
            case dict():
                return {k: self.fill(v, document, (*at, str(k))) for k, v in data.items()}
            case list():
                return [self.fill(v, document, (*at, i)) for i, v in enumerate(data)]
            case str():
                return self._fill_text(data, document, at)
            case _:
                return data

    def _fill_text(self, text: str, document: Document, at: KeyPath) -> object:
        for match in _PATTERN.finditer(text):
            name = match["braced"] or match["named"]
            if name in self.late:
                hint = "a fault must be planned before the run; use a plain value, or one of type env"
                raise document.mistake(at, f"the value of ${{{name}}} is not known before the run", hint)
        whole = _PATTERN.fullmatch(text)
        if whole and (name := whole["braced"] or whole["named"]) in self.values:
            return self.values[name]
        return _PATTERN.sub(self._replace, text)

    def _replace(self, match: re.Match[str]) -> str:
        if match["escaped"]:
            return "$"
        name = match["braced"] or match["named"]
        return str(self.values[name]) if name in self.values else match[0]


def read_variables(document: Document, environ: Mapping[str, str]) -> Variables:
    """From the document's ``configuration`` and ``secrets``, whose shape is checked on the way."""
    values: dict[str, Any] = {}
    late: set[str] = set()
    for name, value in _mapping(document, ("configuration",)).items():
        at = ("configuration", name)
        if not isinstance(value, dict) or "type" not in value:
            values[name] = value
        elif value["type"] == "env":
            values[name] = _from_environment(value, document, at, environ)
        elif value["type"] == "probe":
            late.add(name)
        else:
            hint = did_you_mean(str(value["type"]), ("env", "probe"))
            raise document.mistake((*at, "type"), f"{show(value['type'])} is not a kind of configuration", hint)
    for group, members in _mapping(document, ("secrets",)).items():
        if not isinstance(members, dict):
            hint = "secrets have two levels: `secrets: {target: {name: value}}`"
            raise document.mistake(("secrets", group), f"is {show(members)}, but must be a mapping", hint)
        for name, value in members.items():
            _check_secret(value, document, ("secrets", group, name))
            late.add(name)
    return Variables(values, frozenset(late))


def _mapping(document: Document, at: KeyPath) -> dict[str, Any]:
    value = document.data.get(at[0], {})
    if not isinstance(value, dict):
        raise document.mistake(at, f"is {show(value)}, but must be a mapping (name: value)")
    return value


def _check_secret(value: object, document: Document, at: KeyPath) -> None:
    if isinstance(value, dict) and value.get("type") not in ("env", "vault"):
        hint = did_you_mean(str(value.get("type")), ("env", "vault"))
        raise document.mistake((*at, "type"), f"{show(value.get('type'))} is not a kind of secret", hint)


def _from_environment(value: dict[str, Any], document: Document, at: KeyPath, environ: Mapping[str, str]) -> object:
    known = ("type", "key", "default", "env_var_type")
    for key in value:
        if key not in known:
            raise document.mistake((*at, key), f"the key {key!r} is not known here", did_you_mean(key, known))
    name = value.get("key")
    if not isinstance(name, str) or not name:
        raise document.mistake((*at, "key"), "the key 'key' is missing", "it names the environment variable")
    if name not in environ and "default" not in value:
        raise document.mistake(at, f"the environment has no {name}", f"export {name}=..., or give a default")
    return _typed(environ.get(name, value.get("default")), value.get("env_var_type"), document, at)


def _typed(text: object, kind: object, document: Document, at: KeyPath) -> object:
    """As chaoslib.convert_to_type does."""
    try:
        match kind:
            case None | "str" | "string":
                return text
            case "int" | "integer":
                return int(str(text))
            case "float" | "number":
                return float(str(text))
            case "bool":
                return text if isinstance(text, bool) else str(text).lower() not in ("false", "0", "no")
            case "json":
                return json.loads(text) if isinstance(text, str) and text else text
            case "bytes":
                return text
    except ValueError:
        raise document.mistake(at, f"{show(text)} cannot be read as {kind}") from None
    hint = did_you_mean(str(kind), ("str", "int", "float", "bool", "json", "bytes"))
    raise document.mistake((*at, "env_var_type"), f"{show(kind)} is not a type of variable", hint)


def _texts(data: object, at: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    match data:
        case str():
            yield at, data
        case dict():
            for key, value in data.items():
                yield from _texts(value, (*at, str(key)))
        case list():
            for index, value in enumerate(data):
                yield from _texts(value, (*at, index))
