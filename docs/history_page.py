"""docs/history.md: every file of a history and its columns, from ``harness/history`` itself."""

from __future__ import annotations

import ast
import io
import tokenize
from dataclasses import fields
from pathlib import Path
from typing import Any

from harness.history import run_info, tables
from harness.history.tables import CUT, FaultStage, ObjectEventType, Outcome

SNIPPET = """```python
import json
import pandas as pd
import zstandard

requests = pd.read_parquet("history/requests.parquet")
samples = pd.read_parquet("history/samples.parquet")
faults = pd.read_json("history/faults.jsonl", lines=True)
with zstandard.open("history/objects.jsonl.zst", "rt", encoding="utf-8") as lines:
    objects = pd.json_normalize([json.loads(line) for line in lines], max_level=0)

start_ns = json.load(open("history/run.json"))["load_start_ns"]
requests["at_s"] = (requests["intended_ns"] - start_ns) / 1e9  # clock seconds
print(requests.groupby(["phase", "outcome"]).size())
```"""
_OBJECT_KEYS = {
    "t_ns": "when the watch received it", "kind": "of the object", "type": "what was received, see below",
    "object": "the object as the API server sent it, without `managedFields` where it has no size",
    "since_ns": "of a `GAP`: since when the recorder was blind", "reason": "of a `GAP`: why",
}  # fmt: skip


def parts() -> list[str]:
    """Head line first, then Markdown, a paragraph or a table each."""
    return [
        "Times are whole nanoseconds of the run's one clock since the run began (`harness/clock.py`), stamped on "
        "receipt; null where a thing did not happen. The scenario second is (time - `load_start_ns`) / 1e9 times "
        "`time_scale`, both from `run.json`. What the figures mean that are made from these: `docs/metrics.md`.",
        "Every file is read by plain pandas (and zstandard):",
        SNIPPET,
        f"## history/{tables.REQUESTS_FILE}",
        "One row per planned request, in the order of the schedule.",
        _table(("column", "type", "what it says"), _columns("REQUEST_COLUMNS")),
        "Outcomes: " + ", ".join(f"`{outcome}`" for outcome in Outcome) + ". Cut, wherever it was sent: "
        + ", ".join(f"`{outcome}`" for outcome in Outcome if outcome in CUT) + ".",
        f"## history/{tables.SAMPLES_FILE}",
        "A long table of metrics: a row per scrape and value.",
        _table(("column", "type", "what it says"), _columns("SAMPLE_COLUMNS")),
        f"## history/{tables.OBJECTS_FILE}",
        "One JSON line per event of a watch. The line's number from 0 is its evidence: `objects:1203`.",
        _table(("key", "what it says"), [(f"`{key}`", words) for key, words in _OBJECT_KEYS.items()]),
        "Types: " + ", ".join(f"`{kind}`" for kind in ObjectEventType) + ". `LISTED` was there when the recorder "
        "listed, at the start or after a gap; in a `GAP` it was blind for that kind.",
        f"## history/{tables.FAULTS_FILE}",
        "One JSON line per step in the life of a fault.",
        _table(("key", "what it says"), _attributes(tables, "FaultEvent")),
        "Stages: " + ", ".join(f"`{stage}`" for stage in FaultStage) + ".",
        f"## history/{tables.MARKS_FILE}",
        "One JSON line per thing that the supervisor did or noticed: "
        "`load_start`, `load_step`, `steady_state_before`, `resource_absent` and the like.",
        _table(("key", "what it says"), _attributes(tables, "Mark")),
        f"## history/{tables.LEDGER_FILE}",
        "Only of fake model servers: an `open` and a `close` line per answer, `e` says which; with `pod`, `id` "
        "(chatcmpl- and the client's request id), `prompt_tokens`; closed: `sent_tokens`, `sent_events`, `finish`.",
        f"## history/{tables.RUN_FILE}",
        "One JSON object, written when the run was over.",
        _table(("key", "what it says"), _attributes(run_info, "RunInfo")),
    ]  # fmt: skip


def _columns(name: str) -> list[tuple[str, str, str]]:
    """(column, type, comment) of a dict in tables.py, whose comments are the words."""
    types: dict[str, str] = getattr(tables, name)
    source = Path(tables.__file__).read_text(encoding="utf-8")
    comments: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string.lstrip("# ")
    keys = [
        key
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name
        for key in (node.value.keys if isinstance(node.value, ast.Dict) else ())
    ]
    lines = {key.value: key.lineno for key in keys if isinstance(key, ast.Constant)}
    return [(f"`{column}`", kind, comments.get(lines[column], "")) for column, kind in types.items()]


def _attributes(module: Any, name: str) -> list[tuple[str, str]]:
    """Fields of a dataclass with the docstrings or comments beside them."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    (cls,) = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ClassDef) and n.name == name)
    words: dict[str, str] = {}
    for node, following in zip(cls.body, [*cls.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            said = following.value if isinstance(following, ast.Expr) else None
            text = said.value if isinstance(said, ast.Constant) else ""
            words[node.target.id] = " ".join(str(text).split()).replace("``", "`")
    return [(f"`{f.name}`", words.get(f.name, "")) for f in fields(getattr(module, name)) if f.name != "index"]


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
