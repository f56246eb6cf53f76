"""The node image for kind where no registry of images is to be had.

``python tests/kind/node_image.py`` (with DOCKER_HOST set) builds it and keeps it as one archive in the user's cache,
by what it was made from; the next time it is loaded from there. Whoever has Docker's registry at hand uses kind's own
image, and none of this.
"""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import node_image_recipe
from image_commands import shell
from node_image_recipe import FILES, HERE, build, debian

from harness.stack.cache import cache_dir
from harness.stack.catalogue import CONTROL_PLANE, KUBECTL, NODE_IMAGE
from harness.stack.component import MODULES
from harness.stack.find import find_binaries

NAME = "localhost/gpu-harness-node"
Say = Callable[[str], None]


def ensure(say: Say) -> str:
    """The image's name, with the image in the engine."""
    binaries = find_binaries((*CONTROL_PLANE, KUBECTL, *NODE_IMAGE))
    files = [*sorted(FILES.iterdir()), *sorted((HERE / "pause").iterdir()), MODULES / "kind" / "go.mod"]
    versions = (f"{program} {version}" for program, version in binaries.versions().items())
    key = key_of(Path(node_image_recipe.__file__).read_text(), (f.read_bytes() for f in files), versions)
    name, kept = f"{NAME}:{key}", cache_dir() / "kind" / f"node-{key}.tar.zst"
    if _there(name):
        return name
    if not kept.exists():
        began = time.monotonic()
        build(name, binaries, lambda what: say(f"node image: {what} after {time.monotonic() - began:.0f} s"))
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(".part")
        shell(f"docker save {name} | zstd -q -3 -T0 -o {part} -f")
        for older in kept.parent.glob("node-*.tar.zst"):
            older.unlink()
        part.rename(kept)
        say(f"node image: kept as {kept} ({kept.stat().st_size >> 20} MiB)")
        return name
    began = time.monotonic()
    shell(f"zstd -dc {kept} | docker load -q")
    say(f"node image: loaded from the cache in {time.monotonic() - began:.0f} s")
    return name


def prepare(say: Say) -> None:
    """Debian's packages, for which no program of ours is needed; nothing where an image is kept, which may do."""
    began = time.monotonic()
    if not any((cache_dir() / "kind").glob("node-*.tar.zst")):
        debian(lambda what: say(f"node image: {what} after {time.monotonic() - began:.0f} s"))


def key_of(steps: str, files: Iterable[bytes], versions: Iterable[str]) -> str:
    """``steps`` is Python: what it does counts, and not how it is laid out or what is said about it."""
    tree = ast.parse(steps)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            node.body = [each for each in node.body if not _is_text(each)]
    made_from = [ast.unparse(tree).encode(), *files, *(version.encode() for version in sorted(versions))]
    return hashlib.sha256(b"\0".join(made_from)).hexdigest()[:12]


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _there(name: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", name], capture_output=True).returncode == 0


def main() -> int:
    print(ensure(lambda text: print(text, file=sys.stderr, flush=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
