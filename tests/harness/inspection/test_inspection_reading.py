"""Whatever is handed to ``inspect``: objects with their places, or one message, and never a traceback."""

from __future__ import annotations

import io
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.errors import BadInput
from harness.inspection.accepting import Accepts, read_accepts
from harness.inspection.inspecting import look
from harness.inspection.objects import Objects
from harness.inspection.printing import as_json, as_text
from harness.inspection.reading import LONGEST_BYTES, STDIN, read_paths
from harness.inspection.seen import Seen

HERE = Path(__file__).parent
GOOD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    "content, message",
    [
        (b"\x00\x01\x02\xff\xfe binary", "is not UTF-8 text"),
        (b"\x7fELF\x02\x01\x01" + b"\x00" * 40, "character that YAML does not allow"),
        (b"a" * (LONGEST_BYTES + 1), "is larger than 8 MiB"),
        (b"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
         b"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e]\n",
         "stands for more than"),
        (b"apiVersion: v1\nkind: Pod\n\tmetadata: {}\n", "is not YAML"),
        (b"metadata: &m {name: a, again: *m}\n", "alias"),
        (b"[" * 100_000, "nested too deep"),
        (b"kind: Deployment\nspec:\n  replicas: {{ .Values.replicas }}\n", "is a template, not a manifest"),
        (b'apiVersion: v1\nkind: A\nmetadata: {name: "{{ .Release.Name }}-a"}\n', "is a template, not a manifest"),
        (b"{{- if .Values.enabled }}\nkind: A\n{{- end }}\n", "is a template, not a manifest"),
        (b"just words", "is \"just words\", not a Kubernetes object"),
        (b"kind: Pod\nmetadata: {name: a}\n", "the object has no apiVersion"),
        (b"apiVersion: v1\nkind: Pod\n", "the object has no name"),
        (b"", "holds no Kubernetes object"),
        (b"# only a comment\n---\n", "holds no Kubernetes object"),
        (b"apiVersion: v1\nkind: A\nkind: B\n", "is written twice"),
        (b"apiVersion: v1\nkind: List\nitems: [null]\n", "is nothing, not a Kubernetes object"),
        (b"apiVersion: v1\nkind: PodList\nitems: [just words]\n", "is \"just words\", not a Kubernetes object"),
        (b"apiVersion: v1\nkind: List\nitems:\n", "holds no Kubernetes object"),
        *((b"apiVersion: v1\nkind: A\nmetadata: {name: " + value + b"}\n", "not what its tag says") for value in (
            b"!!bool maybe", b"!!timestamp soon", b"!!int ''", b"!!float ''")),
        *((b"apiVersion: v1\nkind: A\nmetadata: {name: " + value + b"}\n", "digits, which no program reads")
          for value in (b"0x" + b"f" * 6000, b"9" * 6000, b"9" + b":59" * 3000, b"1" + b"0" * 400)),
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_told_in_one_message(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "m.yaml"
    file.write_bytes(content)
    with pytest.raises(BadInput) as told:
        read_paths([file])
    assert message in str(told.value) and str(file) in str(told.value)


def test_a_number_that_no_program_reads_is_told_in_json_too(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text('{"apiVersion": "v1",\n"kind": "A", "metadata": {"name": ' + "9" * 5000 + "}}")
    with pytest.raises(BadInput, match=r"m.json:2: holds a whole number of 5000 digits"):
        read_paths([file])


def test_a_file_that_cannot_be_is_none(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(GOOD)
    for name in ("a" * 300, "m.yaml/x", "none/" + "a" * 300):
        with pytest.raises(BadInput, match="there is no such file or folder"):
            read_paths([tmp_path / name])


def test_a_folder_that_cannot_be_read_is_never_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "m.yaml").write_text(GOOD)
    scandir = os.scandir

    def refusing(path: str) -> Any:  # as root, which tests may be, may read all
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(BadInput, match=r"closed: cannot be read: Permission denied"):
        read_paths([tmp_path])


def test_a_closed_standard_input_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BadInput, match="stdin: is closed"):
        read_paths([STDIN])


def test_a_large_file_is_refused_without_being_parsed(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    with file.open("wb") as out:
        out.truncate(50 << 20)
    began = time.process_time()
    with pytest.raises(BadInput, match="is larger than"):
        read_paths([file])
    assert time.process_time() - began < 1


def test_templates_of_alerts_are_none_of_helms(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(GOOD + 'data: {rule: "{{ $labels.pod }} of {{ .Status }} is down"}\n')
    assert [seen.ref for seen in read_paths([file])[0]] == ["ConfigMap/a"]


@pytest.mark.parametrize("name", ["kustomization.yaml", "Chart.yaml"])
def test_what_another_program_makes_manifests_of_is_told_with_its_command(tmp_path: Path, name: str) -> None:
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / name).write_text("resources: [a.yaml]\n")
    (tmp_path / "deeper" / "a.yaml").write_text(GOOD)
    with pytest.raises(BadInput) as told:
        read_paths([tmp_path])
    assert f"{tmp_path / 'deeper'} | gpu-harness inspect -" in str(told.value)


def test_a_folder_may_hold_other_yaml_too(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "broken.yaml").write_text("{")
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}))
    seen, notes = read_paths([tmp_path])
    assert [s.ref for s in seen] == ["ConfigMap/a", "Pod/b"]
    assert notes == (f"{tmp_path / 'values.yaml'}: no Kubernetes object in it",)
    with pytest.raises(BadInput, match="no such file"):
        read_paths([tmp_path / "none"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="holds no manifest"):
        read_paths([tmp_path / "empty"])


def test_objects_of_lists_and_of_several_documents_keep_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "m.yml"
    file.write_text(
        "---\n# first\n" + GOOD + "---\napiVersion: v1\nkind: List\nitems:\n"
        "- apiVersion: v1\n  kind: Pod\n  metadata: {name: b, creationTimestamp: 2026-01-01}\n"
        "- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: c\n"
    )
    seen, _ = read_paths([file])
    assert [s.ref for s in seen] == ["ConfigMap/a", "Pod/b", "Pod/c"]
    assert [s.where("metadata", "name").line for s in seen] == [5, 12, 16]
    assert str(seen[2].where("metadata", "name")) == f"{file}:16 (metadata.name)"
    assert seen[1].data["metadata"]["creationTimestamp"] == "2026-01-01"  # a text, as for Kubernetes


@pytest.mark.parametrize("written", [GOOD, json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})])
def test_standard_input_may_be_yaml_or_json(tmp_path: Path, written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "piped"
    file.write_text(written)
    with file.open("rb") as raw:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
        [seen], _ = read_paths([STDIN])
    assert str(seen.where("kind")).startswith("stdin:")


def _odd(value: Any, rng: random.Random) -> Any:
    """The same with something else in one place."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        return value | {key: _odd(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        index = rng.randrange(len(value))
        return [*value[:index], _odd(value[index], rng), *value[index + 1 :]]
    return rng.choice(
        [None, {}, [], "", "x", 0, -1, 1.5, True, [None], ["a"], [{}], {"a": None}, [[1]], "100%", {"key": 1}, 10**30]
    )


@pytest.mark.parametrize(
    "spec, status",
    [
        ({"minAvailable": "9" * 400 + "%", "selector": {}}, {}),
        ({"template": {"spec": {"terminationGracePeriod": "9" * 5000 + "s"}}}, {}),
        ({}, {"allocatable": {"nvidia.com/gpu": "\u00b2"}}),
        ({}, {"allocatable": {"nvidia.com/gpu": "9" * 5000}}),
    ],
)
def test_no_number_in_a_text_is_too_odd(spec: dict[str, Any], status: dict[str, Any]) -> None:
    server = next(o for o in yaml.safe_load_all((HERE / "planted" / "no-prestop.yaml").read_text()) if o)
    place = {"metadata": {"name": "a", "namespace": "no-prestop"}, "spec": spec, "status": status}
    for version, kind in (("policy/v1", "PodDisruptionBudget"), ("karpenter.sh/v1", "NodePool"), ("v1", "Node")):
        as_text(look(Objects((Seen(server), Seen({"apiVersion": version, "kind": kind} | place))), Accepts(), "odd"))


def test_no_shape_of_an_object_is_too_odd_to_be_looked_at() -> None:
    rng = random.Random(8)
    files = [*(HERE / "planted").iterdir(), *(HERE / "clean").iterdir()]
    for file in sorted(files):
        objects = [o for o in yaml.safe_load_all(file.read_text()) if o]
        for _ in range(25):
            odd = [_odd(o, rng) for o in objects]
            seen = tuple(Seen(o) for o in odd if isinstance(o, dict))
            for live in (False, True):
                found = look(Objects(seen, live=live), Accepts(), "odd objects")
                as_text(found)
                json.loads(as_json(found))


@pytest.mark.parametrize(
    "written, message",
    [
        ("accept: [{rule: no-prestop}]\n", "the key 'reason' is missing"),
        ("accept: [{rule: no-prestop, reason: ' '}]\n", "must be a text that is not empty"),
        ("accept: [{rule: no-pre-stop, reason: ours}]\n", "did you mean 'no-prestop'?"),
        ("accept: [{rule: accept-without-ground, reason: ours}]\n", "cannot be accepted"),
        ("accept: [{rule: no-prestop, because: ours}]\n", "the key 'because' is not known here"),
        ("accepts: []\n", "did you mean 'accept'?"),
    ],
)
def test_an_accept_file_without_reason_or_of_no_rule_is_bad_input(tmp_path: Path, written: str, message: str) -> None:
    file = tmp_path / "accept.yaml"
    file.write_text(written)
    with pytest.raises(BadInput) as told:
        read_accepts(file)
    assert message in str(told.value) and str(file) in str(told.value)
