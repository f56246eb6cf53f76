"""Reads the YAML and JSON files that people write, and remembers on which line every key stands.

Stricter than Chaos Toolkit's own loader on purpose: a key written twice, a key that YAML does not read as text, two
documents in one file and a recursive alias are refused, because each of them silently means something else.
"""

from __future__ import annotations

import difflib
import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import yaml

from harness.errors import BadInput, Where

KeyPath = tuple[str | int, ...]

_YAML = (".yaml", ".yml")
LONGEST_BYTES = 1 << 20
"""Far more than people write, little enough to be parsed while they wait."""
MOST_VALUES = 100_000
"""With every alias written out: a page of aliases of aliases can stand for billions of values."""

LONGEST_NUMBER = 100
"""Digits of a whole number. Beyond some hundreds no float holds it; beyond some thousands Python does not write it."""

_STR_TAG = "tag:yaml.org,2002:str"
_INT_TAG = "tag:yaml.org,2002:int"
_MERGE_TAG = "tag:yaml.org,2002:merge"


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed file. ``file`` is its name as shown to people; ``lines`` has the line of each key and list item."""

    file: str
    path: Path
    data: Any
    lines: Mapping[KeyPath, int] = field(repr=False)

    def where(self, at: KeyPath) -> Where:
        """The place of a key. A key that is not there stands where its nearest written parent stands."""
        known = at
        while known and known not in self.lines:
            known = known[:-1]
        return Where(self.file, self.lines.get(known, 1), ".".join(str(part) for part in at) or None)

    def mistake(self, at: KeyPath, message: str, hint: str | None = None) -> BadInput:
        return BadInput(message, where=self.where(at), hint=hint)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, if any is near."""
    words = sorted(known)
    lowered = {w.lower(): w for w in reversed(words)}
    found = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    if found:
        return lowered[found[0]]
    starts = [w for w in words if min(len(w), len(word)) >= 3 and (w.startswith(word) or word.startswith(w))]
    return starts[0] if len(starts) == 1 else None


def nearest_file(name: str, siblings: Iterable[str]) -> str | None:
    """The sibling that was probably meant, by the names without their endings: one that all have makes nothing near."""
    ending = PurePath(name).suffix
    ordered = sorted(siblings, key=lambda sibling: (PurePath(sibling).suffix == ending, sibling))
    stems = {PurePath(sibling).stem: sibling for sibling in ordered}
    near = nearest(PurePath(name).stem, stems)
    return None if near is None else stems[near]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint: the nearest word first, then the whole list, so that a reader never has to look elsewhere."""
    words = sorted(known)
    near = nearest(word, words)
    listed = ", ".join(words) if words else "none"
    return f"did you mean {near!r}? known: {listed}" if near else f"known: {listed}"


def find_file(written: str, beside: Path) -> Path | None:
    """A file named in a file: relative to that file, else to the working directory; None where neither exists."""
    for candidate in (beside.parent / written, Path(written)):
        with suppress(OSError, ValueError):  # a name so long, or with such signs in it, that no file can have it
            if candidate.is_file():
                return candidate
    return None


def read_document(path: Path) -> Document:
    """One YAML or JSON file with a mapping at its top."""
    documents = read_documents(path)
    if len(documents) > 1:
        second = documents[1]
        raise BadInput(
            f"holds {len(documents)} documents, but one file describes one thing",
            where=Where(second.file, second.lines.get((), None)),
            hint="split the file at its '---' lines",
        )
    document = documents[0]
    if not isinstance(document.data, dict):
        kind = "nothing" if document.data is None else f"a {type(document.data).__name__}"
        raise BadInput(
            f"holds {kind} at its top, not a mapping", where=Where(document.file, 1), hint="start with `title: ...`"
        )
    return document


def read_documents(path: Path) -> tuple[Document, ...]:
    """All documents of a file, at least one; empty YAML documents between ``---`` lines are left out."""
    text = _read_text(path)
    if path.suffix == ".json":
        return (json_document(path, text),)
    if path.suffix not in _YAML:
        raise BadInput(
            f"has the ending {path.suffix or 'none'!r}, which says neither YAML nor JSON",
            where=Where(str(path)),
            hint="name it .yaml, .yml or .json: Chaos Toolkit reads no other endings",
        )
    documents = tuple(yaml_documents(path, text))
    if not documents:
        raise BadInput("is empty", where=Where(str(path), 1))
    return documents


def _read_text(path: Path) -> str:
    where = Where(str(path))
    try:
        if not (path.is_file() or path.is_dir()) and path.exists():
            raise BadInput("is a pipe or a device, not a file", where=where, hint="save its content to a file")
        with path.open("rb") as file:
            data = file.read(LONGEST_BYTES + 1)
        if len(data) > LONGEST_BYTES:
            raise BadInput(
                f"is larger than {LONGEST_BYTES >> 20} MiB",
                where=where,
                hint="is it the right file? people wrote none so long",
            )
        # As in text mode: the lines of a file from another system are lines, too.
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        siblings = [p.name for p in path.parent.iterdir() if p.is_file()] if path.parent.is_dir() else []
        near = nearest_file(path.name, siblings)
        hint = f"did you mean {path.parent / near}?" if near else f"looked in {path.parent.absolute()}"
        raise BadInput("there is no such file", where=where, hint=hint) from None
    except IsADirectoryError:
        raise BadInput("is a folder, not a file", where=where, hint="name one file in it") from None
    except UnicodeDecodeError as error:
        raise BadInput(
            f"is not UTF-8 text (byte {error.start})", where=where, hint="is it the right file? save it as UTF-8"
        ) from None
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=where) from None


# --- YAML ------------------------------------------------------------------------------------------------------------


def yaml_documents(path: Path, text: str, loader_type: type[yaml.SafeLoader] = yaml.SafeLoader) -> Iterator[Document]:
    """The documents of a text that was read from ``path``; those that hold nothing are left out. BadInput."""
    file = str(path)
    try:
        loader = loader_type(text)
        while loader.check_node():
            node = loader.get_node()
            if node is None:
                break
            _check_size(file, node, {})
            _check_keys(file, node, ())
            data = _constructed(file, loader, node)
            if data is None and not text.strip():
                continue
            lines: dict[KeyPath, int] = {(): node.start_mark.line + 1}
            _collect_lines(node, (), lines)
            if data is not None:
                yield Document(file, path, data, lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        problem = " ".join(part for part in (error.context, error.problem) if part)
        raise BadInput(f"is not YAML: {problem}", where=Where(file, line), hint=_yaml_hint(problem)) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BadInput("holds a character that YAML does not allow", where=Where(file, line)) from None
    except ValueError as error:
        raise BadInput(f"holds a value that YAML cannot read: {error}", where=Where(file)) from None
    except RecursionError:
        raise BadInput("is nested too deep", where=Where(file)) from None


def _constructed(file: str, loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    """PyYAML takes a tag at its word, and stumbles where the text is none of that tag (``!!bool maybe``)."""
    try:
        return loader.construct_document(node)
    except (AttributeError, LookupError, TypeError):
        raise BadInput(
            "holds a text that is not what its tag says",
            where=Where(file, node.start_mark.line + 1),
            hint="leave out tags such as !!bool, !!int and !!timestamp",
        ) from None


def _yaml_hint(problem: str) -> str:
    if "'\\t'" in problem:
        return "indent with spaces; YAML allows no tabs there"
    if "mapping values are not allowed" in problem:
        return "put a text with ': ' in it in quotes, or check the indentation"
    return "put a text with special characters, such as '${name}' inside {...}, in quotes; check the indentation"


def _check_size(file: str, node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node stands for; each node is looked at once, however often aliases point to it."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = 1  # Its own parent, too: that is told by the check of the keys.
    if isinstance(node, yaml.ScalarNode):
        _check_text(file, node.value, node.start_mark.line + 1)
        if node.tag == _INT_TAG:
            _check_number(file, node.value, node.start_mark.line + 1)
    inner = node.value if isinstance(node, yaml.CollectionNode) else ()
    parts = (part for item in inner for part in (item if isinstance(item, tuple) else (item,)))
    size = 1 + sum(_check_size(file, part, known) for part in parts)
    if size > MOST_VALUES:
        raise BadInput(
            f"stands for more than {MOST_VALUES} values", where=Where(file, node.start_mark.line + 1),
            hint="are there aliases of aliases? write out what is meant",
        )  # fmt: skip
    known[id(node)] = size
    return size


def _check_keys(file: str, node: yaml.Node, parents: tuple[yaml.Node, ...], at: KeyPath = ()) -> None:
    """Refuses what PyYAML accepts in silence: keys written twice, keys that are no text, recursive aliases."""
    if node in parents:
        raise BadInput("an alias points to its own parent", where=Where(file, node.start_mark.line + 1, _dotted(at)))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _check_keys(file, item, (*parents, node), (*at, index))
    if not isinstance(node, yaml.MappingNode):
        return
    seen: dict[str, int] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if key_node.tag == _MERGE_TAG:
            _check_keys(file, value_node, (*parents, node), at)
            continue
        if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != _STR_TAG:
            written = key_node.value if isinstance(key_node, yaml.ScalarNode) else "a list or mapping"
            raise BadInput(
                f"the key {written} is not text for YAML",
                where=Where(file, line, _dotted((*at, str(written)))),
                hint=f'put it in quotes: "{written}":',
            )
        key = key_node.value
        if key in seen:
            raise BadInput(
                f"the key {key!r} is written twice; the first one stands on line {seen[key]}",
                where=Where(file, line, _dotted((*at, key))),
                hint="keep one of them; the last one would win in silence",
            )
        seen[key] = line
        _check_keys(file, value_node, (*parents, node), (*at, key))


def _collect_lines(node: yaml.Node, at: KeyPath, lines: dict[KeyPath, int]) -> None:
    """Called after construction, when PyYAML has already put merged keys before a mapping's own ones."""
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            lines[(*at, key_node.value)] = key_node.start_mark.line + 1
            _collect_lines(value_node, (*at, key_node.value), lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*at, index)] = item.start_mark.line + 1
            _collect_lines(item, (*at, index), lines)


# --- JSON ------------------------------------------------------------------------------------------------------------


def json_document(path: Path, text: str) -> Document:
    """The document of a text that was read from ``path``. BadInput."""
    file = str(path)
    try:
        data = json.loads(text, parse_int=lambda written: _short_number(file, text, written))
        lines = _JsonLines(file, text).collect()
    except json.JSONDecodeError as error:
        raise BadInput(f"is not JSON: {error.msg}", where=Where(file, error.lineno)) from None
    except RecursionError:
        raise BadInput("is nested too deep", where=Where(file)) from None
    return Document(file, path, data, lines)


def _short_number(file: str, text: str, written: str) -> int:
    _check_number(file, written, text.count("\n", 0, text.find(written)) + 1)
    return int(written)


class _JsonLines:
    """Walks text that is known to be good JSON once more, only to note where its keys stand."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.decoder = json.JSONDecoder()
        self.newlines = [i for i, c in enumerate(text) if c == "\n"]
        self.lines: dict[KeyPath, int] = {}

    def collect(self) -> dict[KeyPath, int]:
        start = self._skip(0)
        self.lines[()] = self._line(start)
        self._value(start, ())
        return self.lines

    def _line(self, offset: int) -> int:
        return bisect_right(self.newlines, offset) + 1

    def _skip(self, offset: int) -> int:
        while self.text[offset] in " \t\r\n,:":
            offset += 1
        return offset

    def _value(self, offset: int, at: KeyPath) -> int:
        opening = self.text[offset]
        if opening not in "{[":
            value, end = self.decoder.raw_decode(self.text, offset)
            _check_text(self.file, value, self._line(offset))
            return end
        closing = "}" if opening == "{" else "]"
        index = 0
        offset = self._skip(offset + 1)
        while self.text[offset] != closing:
            line = self._line(offset)
            if opening == "{":
                key, offset = self.decoder.raw_decode(self.text, offset)
                _check_text(self.file, key, line)
                inner: KeyPath = (*at, key)
                if inner in self.lines:
                    raise BadInput(
                        f"the key {key!r} is written twice; the first one stands on line {self.lines[inner]}",
                        where=Where(self.file, line, _dotted(inner)),
                        hint="keep one of them; the last one would win in silence",
                    )
            else:
                inner = (*at, index)
                index += 1
            self.lines[inner] = line
            offset = self._skip(self._value(self._skip(offset), inner))
        return offset + 1


def _check_text(file: str, text: object, line: int) -> None:
    """An escape such as \\ud800 alone stands for half a character, which no file of a run could hold."""
    try:
        if isinstance(text, str):
            text.encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start].encode("ascii", "backslashreplace").decode()
        raise BadInput(
            f"holds {half}, which is half a character",
            where=Where(file, line),
            hint="write the character itself, or \\U and its eight digits in YAML",
        ) from None


def _check_number(file: str, written: str, line: int) -> None:
    if len(written) > LONGEST_NUMBER:
        raise BadInput(
            f"holds a whole number of {len(written)} digits, which no program reads",
            where=Where(file, line),
            hint="put it in quotes, if it is a text",
        )


def _dotted(at: KeyPath) -> str | None:
    return ".".join(str(part) for part in at) or None
