"""Whatever stands at whatever place, the answer is a good experiment or BadInput: never another error."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.errors import BadInput
from harness.plan.make import schedule_of_profile
from harness.spec.experiment import load_experiment
from harness.spec.loadprofile import load_profile
from harness.spec.together import check_together

ROOT = Path(__file__).resolve().parents[3]
ODD: list[Any] = [
    None,
    True,
    -1,
    10**30,
    1e999,
    "",
    "${x}",
    "\ud800",
    "\x1b[31m",
    "a" * 5000,
    [],
    [None],
    {"type": "env"},
]


def places(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    for key, value in data.items() if isinstance(data, dict) else enumerate(data if isinstance(data, list) else ()):
        yield from places(value, (*at, key))


def put(data: Any, at: tuple[Any, ...], value: Any) -> Any:
    if not at:
        return value
    changed = copy.deepcopy(data)
    inner = changed
    for part in at[:-1]:
        inner = inner[part]
    inner[at[-1]] = value
    return changed


def with_more(data: dict[str, Any]) -> dict[str, Any]:
    """The shipped experiment, with the parts of Chaos Toolkit that it does not use."""
    more = {"type": "probe", "name": "p", "provider": {"type": "http", "url": "http://127.0.0.1"}, "pauses": None}
    data["configuration"] = {"x": {"type": "env", "key": "X", "default": "1"}, "y": more}
    data["secrets"] = {"group": {"token": {"type": "env", "key": "T"}}}
    tolerance = {"type": "probe", "name": "t", "provider": {"type": "process", "path": "echo"}}
    data["steady-state-hypothesis"]["probes"].append({**more, "name": "q", "tolerance": tolerance})
    data["method"].append({"ref": "q"})
    return data


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_experiment(tmp_path: Path, odd: Any) -> None:
    good = with_more(yaml.safe_load((ROOT / "experiments" / "spot-interruption-during-burst.yaml").read_text()))
    for name in ("llm", "gang-a", "gang-b"):
        (tmp_path / "manifests").mkdir(exist_ok=True)
        (tmp_path / "manifests" / f"{name}.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
    good["extensions"][0]["load"] = "load.yaml"
    (tmp_path / "load.yaml").write_text((ROOT / "loadprofiles" / "chat-bursts.yaml").read_text())
    profile = load_profile(tmp_path / "load.yaml")
    path = tmp_path / "e.json"
    path.write_text(json.dumps(good))
    check_together(load_experiment(path, environ={}), profile)
    for at in places(good):
        path.write_text(json.dumps(put(good, at, odd)))
        try:
            check_together(load_experiment(path, environ={}), profile)
        except BadInput as error:
            assert error.where is not None, at
            assert error.where.line is not None, at


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:20])
def test_profile(tmp_path: Path, odd: Any) -> None:
    good = yaml.safe_load((ROOT / "loadprofiles" / "chat-bursts.yaml").read_text())
    for part in ("prompt", "output"):
        del good["tokens"][part]["points"][2:-1]
    path = tmp_path / "load.json"
    for at in places(good):
        path.write_text(json.dumps(put(good, at, odd)))
        try:
            schedule_of_profile(load_profile(path), 15, 1)
        except BadInput as error:
            assert error.where is not None, at
