"""What real components there are and what is built of them, for people and for programs; and building them by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.errors import BadInput, Where
from harness.spec.document import did_you_mean
from harness.stack.build import Say, build, is_built
from harness.stack.cache import built_dir
from harness.stack.catalogue import COMPONENTS, CONTROL_PLANE, KUBECTL
from harness.stack.component import Component
from harness.stack.description import addons
from harness.stack.module_files import is_taken, take

KUBERNETES = "kubernetes"
"""The control plane, as one name: what `make controlplane` builds."""


@dataclass(frozen=True, slots=True)
class Row:
    """``size_mb`` is of what is built; 0 where nothing is."""

    name: str
    version: str
    built: bool
    size_mb: float
    programs: tuple[str, ...]
    needs: tuple[str, ...]
    about: str
    cheap: bool


def rows() -> list[Row]:
    control_plane = (*CONTROL_PLANE, KUBECTL)
    about = "the control plane itself, with kubectl: what all the others run on"
    found = [_row(KUBERNETES, COMPONENTS["kube-apiserver"].releases[0], control_plane, (), about, True, True)]
    for name, described in addons().items():
        addon = described.addon
        complete = not described.from_module or is_taken(described)
        components = described.components
        found.append(_row(name, described.version, components, addon.needs, addon.about, addon.cheap, complete))
    return found


def _row(
    name: str,
    version: str,
    components: Sequence[Component],
    needs: tuple[str, ...],
    about: str,
    cheap: bool,
    complete: bool,
) -> Row:
    built = complete and all(is_built(component) for component in components)
    files = [path for c in components if (path := built_dir() / c.name).exists()]
    size_mb = round(sum(path.stat().st_size for path in files) / 1e6)
    return Row(name, version, built, size_mb, tuple(c.name for c in components), needs, about, cheap)


def as_json(found: Sequence[Row]) -> str:
    return json.dumps([asdict(row) for row in found], indent=1)


def as_text(found: Sequence[Row]) -> str:
    lines = [("name", "version", "built", "size", "needs", "what it is")]
    for row in found:
        built = "yes" if row.built else "no"
        size = f"{row.size_mb:.0f} MB" if row.size_mb else ""
        lines.append((row.name, row.version, built, size, ", ".join(row.needs), row.about))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]) - 1)]
    return "\n".join("  ".join([*(f"{c:{w}}" for c, w in zip(line, widths, strict=False)), line[-1]]) for line in lines)


def build_all(names: Sequence[str], say: Say, folder: Path | None = None) -> list[str]:
    """Builds components of the catalogue, or single programs, by their names; sentences on what is there now.

    A component that is there already is passed over; one that is cut short goes on where it was. BadInput for a name
    that nothing has, TargetError with Go's own words when one cannot be built.
    """
    known = {KUBERNETES: None, **addons(), **COMPONENTS}
    for name in names:
        if name not in known:
            where = Where("stack build")
            raise BadInput(f"there is no component {name!r}", where=where, hint=did_you_mean(name, known))
    told: list[str] = []
    for name in names:
        components: Sequence[Component]
        if name == KUBERNETES:
            components = (*CONTROL_PLANE, KUBECTL)
        elif name in addons():
            components = addons()[name].components
        else:
            components = (COMPONENTS[name],)
        for program in build(components, say, folder):
            took = f"built within {program.took_s:.0f} s" if program.took_s else "was there"
            told.append(f"{program.path}  {program.size_mb:.0f} MB, {took}")
        if name in addons() and addons()[name].from_module:
            take(addons()[name], folder.parent if folder else None)
    return told


def which(names: Sequence[str], *, cheap: bool, everything: bool) -> list[str]:
    """The names to build: the cheap ones, or all, and those given beside them, each once."""
    asked = [row.name for row in rows() if everything or (cheap and row.cheap)]
    return list(dict.fromkeys([*asked, *names]))
