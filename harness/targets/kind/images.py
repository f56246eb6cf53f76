"""The images of what runs in a kind cluster of ours: on the workers the fakes, on the control-plane node the front.

Where Docker's containers are of this machine's kind they are made of this Python, without a network. Where they are not
(macOS, another architecture), or on demand, ``docker build`` makes them from ``fakes/images/Dockerfile``.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from fakes.images.layer import NoSuchProgram
from fakes.images.oci import ARCHITECTURES
from fakes.images.python_image import FAKES, made_of, python_image, write_build_context
from harness.errors import TargetError
from harness.targets.kind.commands import must

BUILD_ENV, BASE_ENV = "GPU_HARNESS_KIND_BUILD", "GPU_HARNESS_KIND_BASE"
"""The first, if it is set, has the images built by Docker on any machine; the second is the image they begin from."""
BUILD_S = 900.0
"""Pulling the base and the packages counts."""


@dataclass(frozen=True, slots=True)
class Image:
    """``packages`` with all that they require, under ``names``."""

    names: tuple[str, ...]
    packages: tuple[str, ...] = FAKES


def is_made_here(engine: str, env: Mapping[str, str] = os.environ) -> bool:
    """``engine`` is what Docker's server calls its platform: ``linux/arm64``."""
    machine = platform.machine()
    return sys.platform == "linux" and engine == f"linux/{ARCHITECTURES.get(machine, machine)}" and BUILD_ENV not in env


class Images:
    """What a cluster is given, each image at the path of its archive. Made when somebody asks for it, and once."""

    def __init__(self, docker: str, engine: str, cache: Path, wanted: Mapping[Path, Image]) -> None:
        self.wanted = wanted
        self._docker = docker
        self._engine = engine
        self._cache = cache
        self._writing: asyncio.Task[None] | None = None

    async def digest(self) -> str:
        """Of what they are made of; where Docker makes them, of the archives."""
        if not is_made_here(self._engine):
            await self.write()
            return await asyncio.to_thread(_digest_of, *self.wanted)
        with _in_our_words():
            parts = [await asyncio.to_thread(made_of, i.names, i.packages) for i in self.wanted.values()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    async def write(self) -> None:
        """The archives, for ``kind load image-archive``. TargetError when one cannot be made."""
        if self._writing is None:
            self._writing = asyncio.create_task(write_images(self._docker, self._engine, self._cache, self.wanted))
        await self._writing

    async def drop(self) -> None:
        """Nobody wants the archives any more."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        for archive in self.wanted:
            archive.unlink(missing_ok=True)


async def write_images(docker: str, engine: str, cache: Path, wanted: Mapping[Path, Image]) -> None:
    """Writes an archive for ``kind load image-archive`` at each path. TargetError when one cannot be made."""
    with _in_our_words():
        for archive, image in wanted.items():
            if is_made_here(engine):
                layers = cache / archive.stem
                await asyncio.to_thread(python_image, archive, layers, image.names, image.packages)
            else:
                await _build(docker, archive, image)


@contextlib.contextmanager
def _in_our_words() -> Iterator[None]:
    try:
        yield
    except metadata.PackageNotFoundError as error:
        raise TargetError(
            f"the package {error.name} is not installed, and what runs in the cluster needs it",
            hint="pip install 'gpu-harness[device-plugin]'",
        ) from error
    except NoSuchProgram as error:
        raise TargetError(str(error), hint=f"{BUILD_ENV}=1 has Docker build the image") from error


def _digest_of(*archives: Path) -> str:
    found = hashlib.sha256()
    for archive in archives:
        with archive.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


async def _build(docker: str, archive: Path, image: Image) -> None:
    context = archive.with_suffix("")
    await asyncio.to_thread(write_build_context, context, image.packages)
    base = os.environ.get(BASE_ENV) or f"python:{sys.version_info.major}.{sys.version_info.minor}-slim"
    tags = [word for name in image.names for word in ("--tag", name)]
    await must([docker, "build", "--build-arg", f"BASE={base}", *tags, str(context)], within_s=BUILD_S)
    await must([docker, "save", "--output", str(archive), *image.names], within_s=BUILD_S)
