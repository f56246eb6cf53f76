"""What a description says must hold together with its folder, before anything is built or started by it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from harness.errors import BadInput
from harness.spec.document import Document, KeyPath, did_you_mean
from harness.stack.catalogue import COMPONENTS
from harness.stack.placeholders import ASKING, PLAIN_ASKING
from harness.stack.ports import HOST

if TYPE_CHECKING:
    from harness.stack.description import Addon

Wrong = tuple[KeyPath, str, str | None]
"""Where, what, and what to do."""


def check_description(addon: Addon, folder: Path, document: Document) -> None:
    """BadInput for the first thing that could only fail once programs start."""
    for looked in (_globs, _places, _files, _namespaces, _programs, _placeholders):
        for at, what, hint in looked(addon, folder):
            raise document.mistake(at, what, hint)


def _globs(addon: Addon, folder: Path) -> Iterator[Wrong]:
    named: list[tuple[KeyPath, str]] = [(("crds", i), glob) for i, glob in enumerate(addon.crds)]
    if addon.webhooks is not None:
        named += [(("webhooks", "files", i), glob) for i, glob in enumerate(addon.webhooks.files)]
    for name, globs in addon.module_files.items():
        named += [(("module_files", name, i), glob) for i, glob in enumerate(globs)]
    for at, glob in named:
        try:
            if not _is_within(glob):
                raise ValueError
            next(iter(folder.glob(glob)), None)
        except (ValueError, NotImplementedError, IndexError):
            yield at, f"{glob!r} is no pattern of files in the module", "such as config/crd/bases/*.yaml"


def _places(addon: Addon, folder: Path) -> Iterator[Wrong]:
    for secret, place in addon.secrets.items():
        if not _is_within(place):
            yield ("secrets", secret), f"{place!r} is no folder in the run's own", "name it alone, such as certs"


def _files(addon: Addon, folder: Path) -> Iterator[Wrong]:
    for name in addon.module_files:
        if "/" in name or name in addon.files:
            why = "names a folder, too" if "/" in name else "is in `files` as well"
            yield ("module_files", name), f"the name {name!r} {why}", "give it a plain name of its own"
    named: list[tuple[KeyPath, str]] = [(("files", name), file) for name, file in addon.files.items()]
    named += [(("objects", i), file) for i, file in enumerate(addon.objects)]
    for at, file in named:
        if not (_is_within(file) and (folder / file).is_file()):
            yield (
                at,
                f"there is no file {file!r} beside it",
                did_you_mean(file, [path.name for path in folder.iterdir()]),
            )


def _namespaces(addon: Addon, folder: Path) -> Iterator[Wrong]:
    for key in ("services", "secrets", "webhooks", "apis"):
        if getattr(addon, key) and addon.namespace is None:
            yield (key,), "is written, and no namespace that they are in", "write `namespace`"


def _programs(addon: Addon, folder: Path) -> Iterator[Wrong]:
    for i, program in enumerate(addon.programs):
        if program.name in COMPONENTS:
            yield ("programs", i, "name"), f"{program.name!r} is a program of Kubernetes' own", "call it otherwise"
        for name in program.env:
            if "=" in name:
                yield ("programs", i, "env", name), f"{name!r} is no name of a variable", None
        url = ASKING.sub("1", program.health.replace("${host}", HOST))
        try:
            told = urlsplit(url)
            if told.scheme not in ("http", "https") or not told.hostname or told.port == 0:
                raise ValueError
        except ValueError:
            yield ("programs", i, "health"), f"{program.health!r} is no URL", "http://${host}:${port:health}/healthz"


def _placeholders(addon: Addon, folder: Path) -> Iterator[Wrong]:
    for at, text in _texts(addon, folder):
        if "\0" in text:
            yield at, "holds a byte 0, which no program can be given", None
        for kind, name in ASKING.findall(text):
            if (what := _unknown(addon, kind, name)) is not None:
                yield at, f"${{{kind}:{name}}}: {what}", None
        for name in PLAIN_ASKING.findall(text):
            if name in ("cert", "key") and not addon.hosts:
                yield at, f"${{{name}}}: no certificate is made without `hosts`", "write the names that it is for"


def _texts(addon: Addon, folder: Path) -> Iterator[tuple[KeyPath, str]]:
    for i, program in enumerate(addon.programs):
        yield from ((("programs", i, "args", j), text) for j, text in enumerate(program.args))
        yield from ((("programs", i, "env", name), text) for name, text in program.env.items())
        yield from ((("programs", i, "own_places", name), text) for name, text in program.own_places.items())
        yield ("programs", i, "health"), program.health
    for at, file in (*((("files", name), f) for name, f in addon.files.items()), *_numbered(addon.objects)):
        try:
            yield at, (folder / file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{folder / file} cannot be read: {error}") from None


def _numbered(objects: tuple[str, ...]) -> Iterator[tuple[KeyPath, str]]:
    yield from ((("objects", i), file) for i, file in enumerate(objects))


def _unknown(addon: Addon, kind: str, name: str) -> str | None:
    """What is wrong with what a placeholder asks for; None for one that stands for something."""
    if kind in ("scenario", "whole"):
        return None if _is_time(name) else f"{name!r} is no number of seconds"
    if kind == "port":
        other, there, _ = name.partition("/")
        return f"{other!r} is not among `needs`" if there and other not in addon.needs else None
    known = addon.secrets if kind == "secret" else (*addon.files, *addon.module_files)
    return None if name in known else f"{name!r} is not among its {kind}s: {', '.join(known) or 'it has none'}"


def _is_time(name: str) -> bool:
    return re.fullmatch(r"\d{1,9}(\.\d+)?", name) is not None


def _is_within(path: str) -> bool:
    return not PurePosixPath(path).is_absolute() and ".." not in PurePosixPath(path).parts
