"""A spec that is not parsed twice must be read as if it were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from harness.history.objects_file import ObjectsFile

TRAP = 'a "quote",\\"spec":{"not": "one"},"status":{'
SPEC = {"nodeName": "n", "containers": [{"name": "c", "args": [TRAP]}]}
OBJECTS: dict[str, dict[str, Any]] = {
    "plain": {"metadata": {"name": "p", "uid": "1"}, "spec": SPEC, "status": {"phase": "Running"}},
    "the same spec again": {"metadata": {"name": "p", "uid": "1"}, "spec": SPEC, "status": {"phase": "Failed"}},
    "spec last": {"metadata": {"name": "p"}, "status": {"phase": "Running"}, "spec": SPEC},
    "a template within": {"metadata": {"name": "d"}, "spec": {"template": {"spec": SPEC}}, "status": {"replicas": 1}},
    "a status within": {"metadata": {"name": "d"}, "spec": {"x": {"y": 1, "status": {"z": 2}}}, "status": {"n": 1}},
    "only nested ones": {"metadata": {"x": {"name": "d", "spec": {"a": 1}, "status": {"b": 2}}}, "data": 3},
    "a nested one first": {"metadata": {"x": {"n": 0, "spec": {"a": 1}, "status": {"b": 2}}}, "spec": {"c": 3}},
    "in a string": {"metadata": {"name": TRAP, "annotations": {TRAP: TRAP}}, "spec": SPEC, "status": {"phase": TRAP}},
    "no spec": {"metadata": {"name": "e"}, "reason": "Pulled", "message": ',"spec":{},"status":{}'},
}


def written(path: Path, objects: list[dict[str, Any]]) -> Path:
    lines = [
        json.dumps({"t_ns": i, "kind": "Pod", "type": "MODIFIED", "object": obj}, separators=(",", ":"))
        for i, obj in enumerate(objects)
    ]
    path.write_bytes(zstandard.ZstdCompressor().compress(("\n".join(lines) + "\n").encode()))
    return path


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    file = ObjectsFile(written(tmp_path / "objects.jsonl.zst", [OBJECTS[name], OBJECTS["plain"], OBJECTS[name]]))
    assert [event.object for event in file.events()] == [OBJECTS[name], OBJECTS["plain"], OBJECTS[name]]
    assert file.cut is None


def test_an_equal_spec_is_kept_once(tmp_path: Path) -> None:
    events = ObjectsFile(written(tmp_path / "objects.jsonl.zst", list(OBJECTS.values()))).events()
    assert [event.object for event in events] == list(OBJECTS.values())
    assert events[0].object["spec"] is events[1].object["spec"] is events[7].object["spec"]


def test_what_is_null_is_not_there_and_another_lines_spec_stays_whole(tmp_path: Path) -> None:
    spec = {"containers": [{"name": "a", "resources": None}], "nodeName": None}
    status = {"conditions": None, "phase": "Running"}
    bare = {"metadata": None, "spec": None, "status": {"conditions": [None, {"type": "Ready", "message": ":null"}]}}
    objects = [{"metadata": {"name": "p"}, "spec": spec, "status": status}, bare, OBJECTS["plain"]]
    read = ObjectsFile(written(tmp_path / "objects.jsonl.zst", [*objects, objects[0]])).events()
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}, "status": {"phase": "Running"}}
    ready = {"status": {"conditions": [{"type": "Ready", "message": ":null"}]}}
    assert [event.object for event in read] == [pod, ready, OBJECTS["plain"], pod]
