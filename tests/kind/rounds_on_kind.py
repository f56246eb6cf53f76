"""Brings a kind cluster up and takes it down, again and again, as a person would, and looks what is left each time.

``python tests/kind/rounds_on_kind.py FOLDER ROUNDS``, with DOCKER_HOST and all else as the target kind wants it. Every
other round is cut short by a ``kill -9`` of the process that holds the cluster, and the keeper has to do the rest: in
turn when the cluster is up, and while kind still makes it. Ends with 1 when anything is left. kind's own network stays,
as kind leaves it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from random import Random

from engine import processes_of

from harness.targets.kind.kept import cluster_name

EXPERIMENT = Path(__file__).resolve().parent / "one_node" / "one-node.yaml"
"""The smallest cluster that the target knows: what is left does not depend on how many nodes there were."""
WAYS = ("down", "killed when up", "down", "killed while kind made it")
GONE_S = 300.0
EARLY_S, LATE_S = 2.0, 20.0
"""kind takes half a minute for so small a cluster."""


def harness(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "harness.cli", *words], cwd=folder, check=True)


def left(folder: Path, env: Mapping[str, str] = os.environ) -> list[str]:
    """Containers of the cluster, volumes of nobody, networks but for kind's own; processes that know the folder."""
    found = []
    for what, argv in (
        (
            "container",
            ["ps", "-a", "--filter", f"label=io.x-k8s.kind.cluster={cluster_name(env)}", "--format", "{{.Names}}"],
        ),
        ("volume", ["volume", "ls", "--filter", "dangling=true", "--format", "{{.Name}}"]),
        ("network", ["network", "ls", "--format", "{{.Name}}"]),
    ):
        said = subprocess.run(["docker", *argv], env=env, capture_output=True, text=True, check=True).stdout.split()
        found += [f"{what} {name}" for name in said if name not in ("kind", "bridge", "host", "none")]
    return found + processes_of(folder)


def go_up(folder: Path) -> None:
    harness(folder, "up", str(EXPERIMENT), "--target", "kind")


def kill_holder(folder: Path) -> None:
    os.kill(json.loads((folder / ".gpu-harness" / "process.json").read_text())["pid"], signal.SIGKILL)


def kill_while_it_is_made(folder: Path, after_s: float) -> None:
    """``after_s`` from the first container on."""
    argv = [sys.executable, "-m", "harness.cli", "up", str(EXPERIMENT), "--target", "kind"]
    with subprocess.Popen(argv, cwd=folder) as up:
        while up.poll() is None and not any(word.startswith("container") for word in left(folder)):
            time.sleep(0.2)
        time.sleep(after_s)
        kill_holder(folder)
    if up.returncode == 0:
        raise SystemExit("it was up before it was killed")


def until_gone(folder: Path) -> None:
    deadline = time.monotonic() + GONE_S
    while left(folder) and time.monotonic() < deadline:
        time.sleep(0.5)


def main() -> int:
    folder, rounds = Path(sys.argv[1]).resolve(), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    moments = Random(1)
    for number, way in zip(range(1, rounds + 1), cycle(WAYS), strict=False):
        began = time.monotonic()
        if way == "killed while kind made it":
            kill_while_it_is_made(folder, moments.uniform(EARLY_S, LATE_S))
        else:
            go_up(folder)
        up_s = time.monotonic() - began
        if way == "down":
            harness(folder, "down")
        else:
            if way == "killed when up":
                kill_holder(folder)
            until_gone(folder)
        print(f"round {number}: up {up_s:.0f} s, {way} {time.monotonic() - began - up_s:.0f} s", flush=True)
        if found := left(folder):
            print(f"round {number}, {way}: left: {', '.join(found)}")
            return 1
    print(f"{rounds} rounds, nothing left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
