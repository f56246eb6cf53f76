"""All cases, by area."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path

from case import Case

_HERE = Path(__file__).parent / "areas"


@cache
def areas() -> dict[str, list[Case]]:
    names = sorted(path.stem for path in _HERE.glob("*.py"))
    return {name: list(importlib.import_module(f"areas.{name}").CASES) for name in names}
