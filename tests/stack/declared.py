"""What the experiments on the real stack must come to, from the one place where that is declared: ``expected.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from histories import Agreement, Explained

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "experiments" / "stack"
RECORDED = Path(__file__).parent / "recorded"


@dataclass(frozen=True, slots=True)
class Also:
    """Another outcome that the real component was seen to come to, for clocks of its own decide between both."""

    verdict: str
    words: str
    why: str


@dataclass(frozen=True, slots=True)
class Expected:
    """One experiment, or one of its negative twins. ``words`` stand in the finding of ``check``."""

    name: str
    file: Path
    system: str
    on: tuple[str, ...]
    verdict: str
    check: str
    words: str
    components: tuple[str, ...] = ()
    """Of the stack, which it cannot do without."""
    agreement: Agreement | None = None
    long: bool = False
    """Takes so long that it is played when it is asked for only."""
    also: Also | None = None

    @property
    def embedded_file(self) -> Path:
        """How the embedded cluster plays it, where it needs another fault for the same trouble."""
        other = FOLDER / "embedded" / f"{self.name}.yaml"
        return other if other.is_file() else self.file

    @property
    def recorded(self) -> Path:
        """What the real side did once, for comparison without its programs."""
        return RECORDED / f"{self.name}.json"


def declared() -> tuple[Expected, ...]:
    raw: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("expected.yaml").read_text())
    return tuple(each for name, says in raw.items() for each in _of(name, says))


def _of(name: str, says: Mapping[str, Any]) -> list[Expected]:
    on, components = tuple(says["targets"]), tuple(says.get("components", ()))
    agree = says.get("agree")
    own = Expected(
        name, FOLDER / f"{name}.yaml", says["system"], on, says["verdict"], says["check"], says["words"], components,
        _agreement(name, agree) if agree else None, bool(says.get("long", False)),
        Also(**says["also"]) if "also" in says else None,
    )  # fmt: skip
    twins = [
        Expected(
            twin, FOLDER / "negative" / f"{twin}.yaml", says["system"], tuple(how.get("targets", on)),
            how.get("verdict", "fail"), how["check"], how["words"], components,
        )
        for twin, how in (says.get("negative") or {}).items()
    ]  # fmt: skip
    return [own, *twins]


def _agreement(name: str, agree: Mapping[str, Any]) -> Agreement:
    explained = tuple(Explained(pattern, reason) for pattern, reason in (agree.get("explained") or {}).items())
    return Agreement(
        name,
        tuple(agree["objects"]),
        float(agree["within_s"]),
        explained,
        float(agree.get("settle_s", 0)),
        float(agree.get("fleeting_s", 0)),
        by_role=bool(agree.get("by_role", False)),
    )
