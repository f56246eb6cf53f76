"""Manifests from files, folders and standard input, as objects. Whatever is no manifest is told in one message."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import yaml

from harness.errors import BadInput, Where
from harness.inspection.seen import Seen, text
from harness.spec.document import Document, KeyPath, json_document, nearest_file, yaml_documents
from harness.spec.mistakes import show

ENDINGS = (".yaml", ".yml", ".json")
LONGEST_BYTES = 8 << 20
"""Of one file. The largest that people apply, bundles of CRDs, have half of it."""
MOST_FILES = 5_000
STDIN = Path("-")
_STDIN_NAME = Path("stdin")
_KUSTOMIZE = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_TEMPLATE = re.compile(r"\{\{-?\s*(?:/\*|\.|\$|[a-z]+\b)")
_HELM = re.compile(r"\{\{-?[^}\n]*\.(?:Values|Release|Chart)\b")
"""Also where it stands in quotes, so that it is YAML. Rules of alerts have templates of their own, with other names."""


_ELSEWHERE = ("rbac.authorization.k8s.io", "monitoring.coreos.com")
"""Groups whose objects a chart puts into namespaces of others, so that those say nothing of its own."""


class _ManifestLoader(yaml.SafeLoader):
    """As Kubernetes reads YAML: a date is a text, and so is a lone ``=``."""


_ManifestLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if not tag.endswith((":timestamp", ":value"))]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_paths(paths: Iterable[Path]) -> tuple[tuple[Seen, ...], tuple[str, ...]]:
    """The objects, and a note on every file of a folder that holds none. BadInput for what cannot be read."""
    found: list[Seen] = []
    notes: list[str] = []
    for path in paths:
        if path == STDIN:
            if sys.stdin is None:  # Python's word for one that is closed
                raise BadInput("is closed", where=Where(str(_STDIN_NAME)), hint="pipe manifests into it")
            found += _objects(_STDIN_NAME, _read(sys.stdin.buffer.fileno(), _STDIN_NAME))
        elif os.path.isdir(path):
            found += _folder(path, notes)
        else:
            found += _objects(path, _open(path))
    return tuple(_at_home(found)), tuple(notes)


def _at_home(seen: list[Seen]) -> list[Seen]:
    """What a chart writes without a namespace goes where the rest of it goes (``helm template -n`` writes none): the
    only one that its file names, else the only one that is named at all."""
    of_file: dict[str, set[str]] = {}
    for one in seen:
        written = text(one.data, "metadata", "namespace")
        if written and one.group not in _ELSEWHERE:
            of_file.setdefault(one.document_file, set()).add(written)
    everywhere = set().union(*of_file.values())
    found = []
    for one in seen:
        named = of_file.get(one.document_file) or everywhere
        found.append(replace(one, home=next(iter(named))) if len(named) == 1 else one)
    return found


def _folder(folder: Path, notes: list[str]) -> list[Seen]:
    found: list[Seen] = []
    files = 0
    for file in _files(folder):
        files += 1
        if files > MOST_FILES:
            raise BadInput(
                f"holds more than {MOST_FILES} manifests", where=Where(str(folder)), hint="name a folder below it"
            )
        content = _open(file)
        documents = list(_documents(file, content))
        # Values of a chart, a pipeline's configuration: YAML that is no manifest lies beside manifests everywhere.
        documents = [document for document in documents if not _is_configuration(document.data)]
        if not any(_is_object(document.data) for document in documents):
            notes.append(f"{file}: no Kubernetes object in it")
            continue
        found += _objects(file, content, documents)
    if not files:
        raise BadInput("holds no manifest", where=Where(str(folder)), hint=f"files end in {', '.join(ENDINGS)}")
    return found


def _files(folder: Path) -> Iterator[Path]:
    """In the order of their names; without folders that begin with a dot, and without following links to folders."""
    for here, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        where = Where(here)
        if kustomization := next((n for n in _KUSTOMIZE if n in names), None):
            raise BadInput(
                f"is a Kustomize folder: {kustomization} makes the objects, and its patches are none",
                where=where,
                hint=f"kubectl kustomize {here} | gpu-harness inspect -",
            )
        if "Chart.yaml" in names:
            raise BadInput(
                "is a Helm chart, whose templates are no manifests yet",
                where=where,
                hint=f"helm template {here} | gpu-harness inspect -",
            )
        yield from (Path(here, name) for name in sorted(names) if name.endswith(ENDINGS) and not name.startswith("."))


def _unreadable(error: OSError) -> NoReturn:
    """Of a folder that was left out nothing would be found, and that would read as a pass."""
    raise BadInput(f"cannot be read: {error.strerror}", where=Where(str(error.filename))) from None


def _open(path: Path) -> bytes:
    where = Where(str(path))
    if not os.path.lexists(path):  # also where no file could have such a name
        siblings: list[str] = []
        with suppress(OSError):
            siblings = os.listdir(path.parent)
        near = nearest_file(path.name, siblings)
        hint = f"did you mean {path.parent / near}?" if near else f"looked in {path.parent.absolute()}"
        raise BadInput("there is no such file or folder", where=where, hint=hint)
    if os.path.exists(path) and not os.path.isfile(path):
        raise BadInput("is a pipe or a device, not a file", where=where, hint="use - for standard input")
    try:
        with path.open("rb") as file:
            return _read(file.fileno(), path)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=where) from None


def _read(descriptor: int, path: Path) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        data = file.read(LONGEST_BYTES + 1)
    if len(data) > LONGEST_BYTES:
        raise BadInput(
            f"is larger than {LONGEST_BYTES >> 20} MiB", where=Where(str(path)), hint="is it the right file? split it"
        )
    return data


def _documents(path: Path, data: bytes) -> Iterator[Document]:
    where = Where(str(path))
    try:
        content = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"is not UTF-8 text (byte {error.start})", where=where, hint="is it the right file? save it as UTF-8"
        ) from None
    if path.suffix == ".json" or (path == _STDIN_NAME and content.lstrip()[:1] == "{"):
        yield json_document(path, content)
        return
    if helm := _HELM.search(content):
        raise _not_rendered(path, content, helm)
    try:
        yield from yaml_documents(path, content, _ManifestLoader)
    except BadInput as error:
        if not (template := _TEMPLATE.search(content)):
            raise
        raise _not_rendered(path, content, template) from error


def _not_rendered(path: Path, content: str, found: re.Match[str]) -> BadInput:
    return BadInput(
        "is a template, not a manifest: {{ }} is still in it",
        where=Where(str(path), content.count("\n", 0, found.start()) + 1),
        hint="render it first: helm template CHART | gpu-harness inspect -",
    )


def _is_object(data: object) -> bool:
    return isinstance(data, dict) and bool(text(data, "apiVersion")) and bool(text(data, "kind"))


def _is_configuration(data: object) -> bool:
    """Of a tool, such as kind's Cluster or skaffold's Config: it has a kind, but no metadata, and is applied to no
    cluster."""
    return _is_object(data) and isinstance(data, dict) and not {"metadata", "items"} & data.keys()


def _objects(path: Path, data: bytes, documents: list[Document] | None = None) -> list[Seen]:
    found: list[Seen] = []
    for document in _documents(path, data) if documents is None else documents:
        found += _of_document(document, document.data, ())
    if not found and documents is None:
        raise BadInput("holds no Kubernetes object", where=Where(str(path), 1), hint="is it the right file?")
    return found


def _of_document(document: Document, data: object, at: KeyPath) -> Iterator[Seen]:
    if not isinstance(data, dict):
        raise document.mistake(at, f"is {show(data)}, not a Kubernetes object")
    for key in ("apiVersion", "kind"):
        if not text(data, key):
            raise document.mistake((*at, key), f"the object has no {key}", "is this a Kubernetes manifest?")
    listed = data.get("items", "none")
    if text(data, "kind").endswith("List") and (listed is None or isinstance(listed, list)):
        for index, item in enumerate(listed or ()):
            yield from _of_document(document, item, (*at, "items", index))
        return
    seen = Seen(data, document, at)
    if not seen.name:
        raise document.mistake((*at, "metadata", "name"), "the object has no name", "add metadata.name")
    yield seen
