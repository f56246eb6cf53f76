"""The loader keeps lines for YAML and JSON alike, and refuses what the plain loaders take in silence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.errors import BadInput
from harness.spec.document import did_you_mean, find_file, nearest, read_document, read_documents

YAML = """\
a: 1
list:
  - x: {deep: 2}
  - [3,
     4]
merged: &base
  one: 1
child:
  <<: *base
  two: 2
"""

ALIASES_OF_ALIASES = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))
"""Ten lines that stand for half a billion values."""


def write(tmp_path: Path, text: str, name: str = "file.yaml") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_yaml_lines(tmp_path: Path) -> None:
    document = read_document(write(tmp_path, YAML))
    places = [("a",), ("list",), ("list", 0, "x", "deep"), ("list", 1, 1), ("child", "two"), ("child", "one")]
    assert [document.lines[at] for at in places] == [1, 2, 3, 5, 10, 7]
    assert document.data["child"] == {"one": 1, "two": 2}


def test_json_lines_agree_with_yaml_lines(tmp_path: Path) -> None:
    data = {"a": 1, "list": [{"x": {"deep": '"q", [1]: \\'}}, [3, 4.5e3, True, None], [], {}], "é\n": "\u2028"}
    for indent in (None, 1, "\t"):
        text = json.dumps(data, indent=indent)
        document = read_document(write(tmp_path, text, "file.json"))
        assert document.data == data
        keys = [at for at in document.lines if at]
        assert len(keys) == 13
        if indent == 1:
            assert document.lines == read_document(write(tmp_path, text)).lines


def test_a_missing_key_stands_where_its_parent_stands(tmp_path: Path) -> None:
    document = read_document(write(tmp_path, YAML))
    where = document.where(("list", 0, "x", "gone"))
    assert str(where).endswith("file.yaml:3 (list.0.x.gone)")


@pytest.mark.parametrize(
    "name, text, line, says",
    [
        ("f.yaml", "a: 1\nb: 2\na: 3\n", 3, "'a' is written twice; the first one stands on line 1"),
        ("f.json", '{"a": 1,\n "b": {"c": 1,\n "c": 2}}', 3, "'c' is written twice; the first one stands on line 2"),
        ("f.json", '{"a": 1,\n}', 2, "is not JSON"),
        ("f.yaml", "a: &x\n  b: *x\n", 1, "an alias points to its own parent"),
        ("f.yaml", "1: x\n", 1, "the key 1 is not text"),
        ("f.yaml", "a: 1\n? [b]\n: 2\n", 2, "is not text"),
        ("f.yaml", "", 1, "is empty"),
        ("f.yaml", "# only a comment\n", 1, "is empty"),
        ("f.yaml", "- a\n", 1, "a list at its top"),
        ("f.yaml", "a: 1\n---\nb: 2\n", 3, "holds 2 documents"),
        ("f.yaml", "a: \x07\n", 1, "does not allow"),
        ("f.yaml", "a: 2023-13-45\n", None, "cannot read"),
        ("f.yaml", "[" * 1200, None, "nested too deep"),
        ("f.yaml", ALIASES_OF_ALIASES, 6, "more than 100000 values"),
        ("f.yaml", "a: 1\n" + "# long\n" * 200_000, None, "larger than 1 MiB"),
        ("f.json", " " * (2 << 20), None, "larger than 1 MiB"),
        ("f.txt", "a: 1\n", None, "'.txt'"),
        ("f", "a: 1\n", None, "'none'"),
    ],
)
def test_refused(tmp_path: Path, name: str, text: str, line: int | None, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_document(write(tmp_path, text, name))
    assert caught.value.where is not None
    assert (caught.value.where.line, says in caught.value.message) == (line, True), caught.value


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path, "a: 1\n", "experiment.yaml")
    with pytest.raises(BadInput, match="no such file") as caught:
        read_document(tmp_path / "experimnt.yaml")
    assert "experiment.yaml" in (caught.value.hint or "")
    with pytest.raises(BadInput, match="is a folder"):
        read_document(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    with pytest.raises(BadInput, match="not UTF-8"):
        read_document(tmp_path / "latin.yaml")


def test_what_has_no_end_is_not_read(tmp_path: Path) -> None:
    """A pipe that nobody writes into, and a device that never ends: neither a wait nor a full memory."""
    pipe, device = tmp_path / "pipe.yaml", tmp_path / "device.yaml"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        with pytest.raises(BadInput, match="a pipe or a device"):
            read_document(path)


def test_lines_of_another_system_are_lines(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_bytes(YAML.replace("\n", "\r\n").encode("utf-8-sig"))
    assert read_document(path).lines == read_document(write(tmp_path, YAML, "plain.yaml")).lines


def test_several_documents_keep_their_own_lines(tmp_path: Path) -> None:
    first, second = read_documents(write(tmp_path, "---\na: 1\n---\n---\nb: 2\n"))
    assert (first.lines[("a",)], second.lines[("b",)]) == (2, 5)


def test_nearest_word() -> None:
    assert nearest("Rollback", ["rollbacks", "method"]) == "rollbacks"
    assert nearest("xyz", ["service", "model"]) is None
    assert did_you_mean("zzz", ["b", "a"]) == "known: a, b"


def test_files_are_found_beside_the_file_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    write(tmp_path, "", "both.yaml")
    write(tmp_path / "inner", "", "both.yaml")
    write(tmp_path, "", "here.yaml")
    monkeypatch.chdir(tmp_path)
    beside = tmp_path / "inner" / "experiment.yaml"
    assert find_file("both.yaml", beside) == tmp_path / "inner" / "both.yaml"
    assert find_file("here.yaml", beside) == Path("here.yaml")
    assert find_file("nowhere.yaml", beside) is None
