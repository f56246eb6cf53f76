"""The image in which our fakes run: this Python, some of its packages, our own code. No network is needed.

Layers are kept in ``cache`` under a name that says what is in them: the interpreter and its packages, which take a
minute of CPU, are made once.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import py_compile
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path

import fakes
from fakes.images.layer import stage, stage_base, stage_libraries, write_layer
from fakes.images.oci import Run, write_archive

NAME = "localhost/gpu-harness:1"
PAUSE = "localhost/pause:1"
FAKES = ("aiohttp", "grpcio", "httptools", "protobuf", "pyyaml")
"""What model server and device plugin need."""
PROGRAMS = ("sh", "cat", "env", "ls", "sleep", "touch", "true", "false", "rm")
PREFIX = Path("usr/local")
ENV = (
    "LD_LIBRARY_PATH=/usr/local/lib",
    "PYTHONUNBUFFERED=1",
    "PYTHONDONTWRITEBYTECODE=1",
    "PYTHONPATH=/opt/gpu-harness",
)
_NOT_NEEDED = ("test", "tests", "idlelib", "ensurepip", "tkinter", "lib2to3", "turtledemo", "site-packages",
               "dist-packages", "__pycache__")  # fmt: skip
_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
_PYTHON = (sys.version, *PROGRAMS)
DOCKERFILE = Path(__file__).with_name("Dockerfile")
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)")
Recipe = Callable[[Path], None]


def python_image(archive: Path, cache: Path, names: Sequence[str] = (NAME,), packages: Sequence[str] = FAKES) -> None:
    """Our code with ``packages`` and what those require, under ``names``; runs ``python3``. Raises
    ``importlib.metadata.PackageNotFoundError`` for a package that this Python does not have."""
    wanted = closure(packages)
    with _alone(cache):
        layers = [
            _layer(cache, "python", _PYTHON, _stage_python),
            _layer(cache, "packages", _versions(wanted), lambda root: _stage_packages(root, wanted)),
            _layer(cache, "code", _contents(), _stage_code),
        ]
        write_archive(archive, names, layers, Run(("python3",), ENV))


def made_of(names: Sequence[str] = (NAME,), packages: Sequence[str] = FAKES) -> str:
    """A digest of what ``python_image`` would make the image of."""
    parts = (names, _PYTHON, _versions(closure(packages)), _contents(), ENV)
    return hashlib.sha256("\0\0".join("\0".join(part) for part in parts).encode()).hexdigest()


def write_build_context(folder: Path, packages: Sequence[str] = FAKES) -> None:
    """What ``docker build`` makes the same image of, on a machine of another kind: ``Dockerfile``, our code, and
    ``packages`` with what they require in the versions that this Python has."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(DOCKERFILE, folder / "Dockerfile")
    wanted = [f"{name}=={metadata.version(name)}" for name in closure(packages)]
    (folder / "requirements.txt").write_text("\n".join(wanted) + "\n")
    for package in _ours():
        shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))


def pause_image(archive: Path, cache: Path, name: str = PAUSE) -> None:
    """What holds the namespaces of a pod: it sleeps. The runtime ends it with SIGKILL."""
    with _alone(cache):
        layer = _layer(cache, "pause", ["sleep"], lambda root: stage_base(root, ["sleep"]))
        write_archive(archive, [name], [layer], Run(("/bin/sleep", "infinity")))


@contextlib.contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """Runs that begin at the same time would make the same layer twice, and one of other code takes older layers away
    while somebody still reads them. The lock ends with the process."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def closure(packages: Iterable[str]) -> list[str]:
    """The distributions and all that they require here, by their normalised names."""
    found: set[str] = set()
    waiting = [_normal(name) for name in packages]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for requirement in metadata.requires(name) or ():
            match = _REQUIREMENT.match(requirement)
            if match is None or "extra ==" in requirement:
                continue
            if _installed(needed := _normal(match.group(1))):  # others are for other platforms
                waiting.append(needed)
    return sorted(found)


def _layer(cache: Path, kind: str, made_of: Iterable[str], recipe: Recipe) -> Path:
    digest = hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:16]
    path = cache / f"{kind}-{digest}.tar"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=cache, prefix=".staging-") as staging:
            root = Path(staging)
            recipe(root)
            write_layer(path, root)
        for older in cache.glob(f"{kind}-*.tar"):
            if older != path:
                older.unlink(missing_ok=True)
    return path


def _stage_python(root: Path) -> None:
    stage_base(root, PROGRAMS)
    executable = Path(sys.executable).resolve()
    stage(root, executable, PREFIX / "bin/python3")
    stdlib = root / PREFIX / "lib" / _VERSION
    shutil.copytree(
        sysconfig.get_path("stdlib"),
        stdlib,
        symlinks=False,
        ignore=shutil.ignore_patterns(*_NOT_NEEDED, "*.a", "config-*", "_tkinter*"),
    )
    for library in Path(sys.base_prefix, "lib").glob("libpython*.so.*"):
        stage(root, library.resolve(), PREFIX / "lib" / library.name)
    prefix = Path(sys.base_prefix)
    stage_libraries(root, [executable, *stdlib.rglob("*.so")], but_below=prefix if prefix != Path("/usr") else None)
    _compile(root, PREFIX / "lib" / _VERSION)


def _stage_packages(root: Path, names: Iterable[str]) -> None:
    site = PREFIX / "lib" / _VERSION / "site-packages"
    for name in names:
        for file in metadata.files(name) or ():
            source = Path(str(file.locate()))
            inside = ".." not in file.parts and "__pycache__" not in file.parts
            if inside and source.is_file():
                stage(root, source, site / file)
    (root / site).mkdir(parents=True, exist_ok=True)
    stage_libraries(root, (root / site).rglob("*.so"))
    _compile(root, site)


def _stage_code(root: Path) -> None:
    for package in _ours():
        shutil.copytree(package, root / "opt/gpu-harness" / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    _compile(root, Path("opt/gpu-harness"))


def _compile(root: Path, place: Path) -> None:
    """Without it each container would compile all that it imports, seconds of CPU every time. What is no Python of this
    version is left as it is."""
    for file in (root / place).rglob("*.py"):
        compiled = file.parent / "__pycache__" / f"{file.stem}.{sys.implementation.cache_tag}.pyc"
        with contextlib.suppress(py_compile.PyCompileError):
            py_compile.compile(
                str(file), str(compiled), dfile="/" + str(file.relative_to(root)), doraise=True,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )  # fmt: skip


def _versions(distributions: Iterable[str]) -> list[str]:
    return [sys.version, *(f"{name} {metadata.version(name)}" for name in distributions)]


def _contents() -> list[str]:
    files = sorted(file for package in _ours() for file in package.rglob("*") if _counts(file))
    return [sys.version, *(f"{file} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files)]


def _counts(file: Path) -> bool:
    return file.is_file() and "__pycache__" not in file.parts


def _ours() -> list[Path]:
    here = Path(fakes.__path__[0])
    return [here, here.parent / "harness"]


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
