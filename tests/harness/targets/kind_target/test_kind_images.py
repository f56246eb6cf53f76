"""Who makes the images for a kind cluster, and of what."""

from __future__ import annotations

import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from docker_on_path import OnPath
from docker_on_path import on_path as on_path

from fakes.images.oci import ARCHITECTURES
from fakes.images.python_image import FAKES, closure
from harness.errors import TargetError
from harness.targets.kind.images import BASE_ENV, BUILD_ENV, Image, Images, is_made_here, write_images
from harness.targets.kind.target import FRONT_PACKAGES

OURS = f"linux/{ARCHITECTURES.get(platform.machine(), platform.machine())}"
OTHER = "linux/arm64" if OURS == "linux/amd64" else "linux/amd64"


AS_IN_THE_IMAGE = """
import importlib, importlib.metadata, re, sys
from importlib.machinery import PathFinder
module, *wanted = sys.argv[1:]
of = importlib.metadata.packages_distributions()

class OnlyWanted(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        dists = {re.sub("[-_.]+", "-", d).lower() for d in of.get(name.partition(".")[0], ())}
        hidden = dists and not dists & {*wanted, "gpu-harness"}
        return None if hidden else super().find_spec(name, path, target)

sys.meta_path[:] = [OnlyWanted if finder is PathFinder else finder for finder in sys.meta_path]
importlib.import_module(module)
"""
"""What a library tries and does without may be missing there; what our code imports may not."""


@pytest.mark.parametrize(
    ("module", "packages"),
    [
        ("harness.targets.kind.front", FRONT_PACKAGES),
        ("fakes.vllm.__main__", FAKES),
        ("fakes.device_plugin.__main__", FAKES),
    ],
)
def test_what_runs_in_an_image_finds_all_that_it_imports_there(module: str, packages: tuple[str, ...]) -> None:
    argv = [sys.executable, "-c", AS_IN_THE_IMAGE, module, *closure(packages)]
    ended = subprocess.run(argv, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-2000:]


@pytest.mark.parametrize(
    ("system", "engine", "here"), [("linux", OURS, True), ("linux", OTHER, False), ("darwin", OURS, False)]
)
def test_this_python_is_good_for_containers_of_its_own_kind(
    monkeypatch: pytest.MonkeyPatch, system: str, engine: str, here: bool
) -> None:
    monkeypatch.setattr("sys.platform", system)
    assert is_made_here(engine, {}) is here
    assert not is_made_here(engine, {BUILD_ENV: "1"})


async def test_elsewhere_docker_builds_it_of_our_code_and_the_versions_that_are_here(
    tmp_path: Path, on_path: OnPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BASE_ENV, "mirror.example/python:3")
    archive = tmp_path / "front.tar"
    image = Image(("localhost/front:1", "docker.io/vllm/vllm:1"), ("aiohttp",))
    await write_images(str(on_path.folder / "docker"), OTHER, tmp_path / "cache", {archive: image})
    context = tmp_path / "front"
    assert on_path.calls() == [
        "docker build --build-arg BASE=mirror.example/python:3 --tag localhost/front:1 --tag docker.io/vllm/vllm:1 "
        f"{context}",
        f"docker save --output {archive} localhost/front:1 docker.io/vllm/vllm:1",
    ]
    assert f"aiohttp=={metadata.version('aiohttp')}" in (context / "requirements.txt").read_text().splitlines()
    copied = [
        words[1]
        for line in (context / "Dockerfile").read_text().splitlines()
        if (words := line.split())[:1] == ["COPY"]
    ]
    assert copied == ["${REQUIREMENTS}", "fakes", "harness"]
    assert (context / "fakes/vllm/__main__.py").exists() and (context / "harness/cli.py").exists()


async def test_images_of_this_python_are_told_by_what_they_are_made_of_and_not_made_for_that(tmp_path: Path) -> None:
    def images(*packages: str) -> Images:
        return Images("docker", OURS, tmp_path / "cache", {tmp_path / "a.tar": Image(("a:1",), packages)})

    found = await images("aiohttp").digest()
    assert found == await images("aiohttp").digest() != await images("pyyaml").digest()
    assert list(tmp_path.iterdir()) == []


async def test_what_docker_makes_is_made_once_and_dropped_when_nobody_wants_it(tmp_path: Path, on_path: OnPath) -> None:
    archive = tmp_path / "a.tar"
    made = Images(str(on_path.folder / "docker"), OTHER, tmp_path / "cache", {archive: Image(("a:1",), ("pyyaml",))})
    archive.write_bytes(b"of docker")
    assert await made.digest() == await made.digest()
    await made.write()
    assert [call.split()[1] for call in on_path.calls()] == ["build", "save"]
    await made.drop()
    assert not archive.exists()


async def test_dockers_own_words_say_why_it_could_not_build(tmp_path: Path, on_path: OnPath) -> None:
    on_path.answers("docker build", code=1, err="ERROR: failed to resolve source metadata for python:3.13-slim")
    with pytest.raises(TargetError, match="failed to resolve source metadata"):
        await write_images(str(on_path.folder / "docker"), OTHER, tmp_path, {tmp_path / "a.tar": Image(("a:1",))})


async def test_a_package_that_is_not_installed_is_named(tmp_path: Path, on_path: OnPath) -> None:
    wanted = {tmp_path / "a.tar": Image(("a:1",), ("no-such-package",))}
    with pytest.raises(TargetError, match="the package no-such-package is not installed") as raised:
        await write_images(str(on_path.folder / "docker"), OTHER, tmp_path, wanted)
    assert raised.value.hint is not None and "gpu-harness[device-plugin]" in raised.value.hint
