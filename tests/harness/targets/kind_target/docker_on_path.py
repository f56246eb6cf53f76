"""Programs ``docker`` and ``kind`` for PATH that write down how they are called, and answer from a script."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

PROGRAM = """#!{python}
import json, pathlib, shutil, sys
folder, name = pathlib.Path({folder!r}), pathlib.Path(sys.argv[0]).name
words = [name, *sys.argv[1:]]
with (folder / "calls.jsonl").open("a") as calls:
    print(json.dumps(words), file=calls)
if words[1] == "cp" and "-" not in words:
    shutil.copy(*(folder / "containers" / word.replace(":/", "/") if ":/" in word else word for word in words[2:]))
for begins, code, out, err in json.loads((folder / "answers.json").read_text()):
    if ' '.join(words).startswith(begins):
        sys.stdout.write(out); sys.stderr.write(err); sys.exit(code)
"""


class OnPath:
    """Answers are looked at in the order of their saying, the last said first; what nothing is said of succeeds. A file
    is copied out of a container and into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._answers: list[tuple[str, int, str, str]] = []
        for name in ("docker", "kind"):
            program = folder / name
            program.write_text(PROGRAM.format(python=sys.executable, folder=str(folder)))
            program.chmod(0o755)
        self._write()

    def answers(self, begins: str, out: str = "", *, code: int = 0, err: str = "") -> None:
        self._answers.insert(0, (begins, code, out, err))
        self._write()

    def file(self, container: str, path: str) -> Path:
        """Where a file of a container lies here; its folder is made."""
        found = self.folder / "containers" / f"{container}{path}"
        found.parent.mkdir(parents=True, exist_ok=True)
        return found

    def calls(self, *, but: tuple[str, ...] = ("inspect",)) -> list[str]:
        """Of all that was called, what changes something."""
        file = self.folder / "calls.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [" ".join(words) for words in lines if words[1] not in but]

    def _write(self) -> None:
        (self.folder / "answers.json").write_text(json.dumps(self._answers))


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OnPath:
    folder = tmp_path / "bin"
    folder.mkdir()
    made = OnPath(folder)
    monkeypatch.setenv("PATH", str(folder))
    return made
