"""What ``docker build`` of the fakes begins from, where no registry of images is to be had.

Debian with its Python, as the node image has it, and beside it pip and the wheels of all that the fakes and the front
require, from wherever pip on this machine has its packages: what a container of this engine builds has no network. A
user's base is ``python:3.N-slim``, which needs none of this.
"""

from __future__ import annotations

import sys
import tempfile
import time
import zipfile
from importlib import metadata
from pathlib import Path

from image_commands import run, shell
from node_image import Say
from node_image_recipe import debian

from fakes.images.python_image import FAKES, closure
from harness.targets.kind.target import FRONT_PACKAGES

NAME = "localhost/python-with-wheels:1"
PIP = "25.3"
PACKAGES = "usr/lib/python3/dist-packages"
SETTINGS = ("PIP_NO_INDEX=1", "PIP_FIND_LINKS=/wheels", "PIP_BREAK_SYSTEM_PACKAGES=1")
"""The last: Debian's Python is Debian's to change, unless it is told otherwise."""


def ensure_base(say: Say) -> str:
    """The image's name, with the image in the engine. It is made for this Python's minor version or not at all."""
    began = time.monotonic()
    root = debian(lambda what: say(f"base of docker build: {what}"))
    wanted = [f"{name}=={metadata.version(name)}" for name in closure([*FAKES, *FRONT_PACKAGES])]
    version = run("chroot", str(root), "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    with tempfile.TemporaryDirectory(prefix="gpu-harness-base-") as work:
        wheels = Path(work) / "wheels"
        get = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        run(*get, "--python-version", version, "--dest", str(wheels), f"pip=={PIP}", *wanted)
        with zipfile.ZipFile(next(wheels.glob("pip-*.whl"))) as pip:
            pip.extractall(Path(work) / PACKAGES)
            its = " ".join(sorted({f"./{PACKAGES}/{name.partition('/')[0]}" for name in pip.namelist()}))
        changes = " ".join(f"--change 'ENV {setting}'" for setting in SETTINGS)
        left_out = " ".join(f"--exclude='./{name}/*'" for name in ("proc", "sys", "dev", "usr/lib/systemd"))
        # One archive of both folders, in which no path may stand twice.
        shell(f"tar {left_out} -C {root} -c . -C {work} ./wheels {its} | docker import {changes} - {NAME}")
    said = run("docker", "run", "--rm", NAME, "python3", "-m", "pip", "--version")
    say(f"base of docker build: {' '.join(said.split()[:2])}, after {time.monotonic() - began:.0f} s")
    return NAME
