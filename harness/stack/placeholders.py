"""Placeholders in an addon's description and files: ``${kubeconfig}``, ``${port:metrics}``, ``${scenario:30}`` (as many
scenario seconds, as a Go duration), ``${whole:30}`` (the same in whole clock seconds).

Whatever is not one of these is left as it is: configuration files have dollar signs of their own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import TargetError
from harness.stack.ports import HOST, HeldPorts

PLAIN = (
    "kubeconfig", "folder", "url", "host", "cert", "key", "authority", "front_proxy_authority", "namespace",
    "surroundings",
)  # fmt: skip
PLAIN_ASKING = re.compile(rf"\$\{{({'|'.join(PLAIN)})\}}")
ASKING = re.compile(r"\$\{(port|file|secret|scenario|whole):([^{}]+)\}")


@dataclass(slots=True)
class Values:
    """What the placeholders of one addon stand for. A port that is named for the first time is taken then; ``ports``
    are those of all addons together, by ``addon/name``, so that one can name another's: ``${port:prometheus/web}``."""

    addon: str
    folder: Path
    plain: Mapping[str, str]
    time_scale: float
    held: HeldPorts
    ports: dict[str, int]
    files: dict[str, Path] = field(default_factory=dict)
    secrets: Mapping[str, Path] = field(default_factory=dict)

    def port(self, name: str) -> int:
        key = name if "/" in name else f"{self.addon}/{name}"
        if key not in self.ports:
            self.ports[key] = self.held.take()
        return self.ports[key]

    def fill(self, text: str) -> str:
        plain = PLAIN_ASKING.sub(lambda found: self._plain(found[1]), text)
        return ASKING.sub(lambda found: self._of(found[1], found[2]), plain)

    def filled(self, value: Any) -> Any:
        """Every text in a tree of JSON."""
        match value:
            case str():
                return self.fill(value)
            case dict():
                return {key: self.filled(inner) for key, inner in value.items()}
            case list():
                return [self.filled(inner) for inner in value]
            case _:
                return value

    def _plain(self, name: str) -> str:
        if name == "folder":
            return str(self.folder)
        if name == "host":
            return HOST
        return self._known(name, self.plain)

    def _of(self, kind: str, name: str) -> str:
        kinds: dict[str, Callable[[str], str]] = {
            "port": lambda name: str(self.port(name)),
            "file": lambda name: str(self._known(name, self.files)),
            "secret": lambda name: str(self._known(name, self.secrets)),
            "scenario": lambda name: f"{float(name) / self.time_scale:.3f}s",
            "whole": lambda name: f"{max(1, math.ceil(float(name) / self.time_scale))}s",
        }
        return kinds[kind](name)

    def _known(self, name: str, known: Mapping[str, Any]) -> str:
        if name not in known:
            raise TargetError(f"{self.addon}: its description asks for {name!r}, which is not known here")
        return str(known[name])
