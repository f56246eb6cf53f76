"""How the real programs of a standing cluster are, asked of the process that holds it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from harness.errors import BadInput, TargetError
from harness.targets.base import CONNECTION_FILE, Connection
from harness.targets.standing import PROCESS_FILE, last_words

_STATE = {"running", "halted", "frozen", "log"}


def programs(folder: Path) -> list[dict[str, Any]]:
    """BadInput where no cluster is up in ``folder``, TargetError where one is that has no real programs or is gone."""
    if not (folder / CONNECTION_FILE).exists():
        if (folder / PROCESS_FILE).exists() and (why := last_words(folder)):
            raise TargetError(why, hint="gpu-harness stack up NAME... starts it anew")
        raise BadInput("no cluster of ours is up in this folder", hint="gpu-harness stack up NAME... starts one")
    connection = Connection.read(folder / CONNECTION_FILE)
    if connection.stack_url is None:
        raise TargetError(f"the cluster that is up runs no real program (target {connection.target})")
    try:
        answer = httpx.get(f"{connection.stack_url}/programs", trust_env=False, timeout=10)
        answer.raise_for_status()
    except httpx.ConnectError as error:
        raise TargetError(
            "the process that held the cluster is gone, and the cluster with it (it was killed, or the machine was)",
            hint="gpu-harness stack up NAME... starts it anew",
        ) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise TargetError(
            f"the cluster does not answer: {error}", hint="gpu-harness stack down, then up again"
        ) from error
    try:
        found: list[dict[str, Any]] = answer.json()["programs"]
        if not all(isinstance(program["name"], str) and program.keys() >= _STATE for program in found):
            raise ValueError("a program without a name")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TargetError(
            f"what answers at {connection.stack_url} is no cluster of ours",
            hint="gpu-harness stack down, then up again",
        ) from error
    return found


def to_json(found: Sequence[dict[str, Any]]) -> str:
    return json.dumps(list(found), indent=1)


def as_text(found: Sequence[dict[str, Any]]) -> str:
    widest = max((len(program["name"]) for program in found), default=0)
    lines = []
    for program in found:
        state = "runs" if program["running"] else "was stopped" if program["halted"] else "died"
        state = "is frozen" if program["frozen"] else state
        lines.append(f"{program['name']:{widest}}  {state:11}  {program['log']}")
    return "\n".join(lines)
