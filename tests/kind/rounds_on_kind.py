"""Brings a kind cluster up and takes it down, again and again, as a person would, and looks what is left each time.

``python tests/kind/rounds_on_kind.py FOLDER ROUNDS``, with DOCKER_HOST and all else as the target kind wants it. Every
other round is cut short: the process that holds the cluster is killed, and the keeper has to do the rest. Ends with 1
when anything is left. kind's own network stays, as kind leaves it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from harness.targets.kind.kept import CLUSTER_ENV

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENT = ROOT / "experiments" / "kind" / "consolidation.yaml"
"""The one with the fewest nodes."""
GONE_S = 300.0


def harness(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "harness.cli", *words], cwd=folder, check=True)


def left(folder: Path, env: Mapping[str, str] = os.environ) -> list[str]:
    """Containers of the cluster, volumes of nobody, networks but for kind's own; processes that know the folder."""
    found = []
    cluster = env.get(CLUSTER_ENV, "gpu-harness")
    for what, argv in (
        ("container", ["ps", "-a", "--filter", f"label=io.x-k8s.kind.cluster={cluster}", "--format", "{{.Names}}"]),
        ("volume", ["volume", "ls", "--filter", "dangling=true", "--format", "{{.Name}}"]),
        ("network", ["network", "ls", "--format", "{{.Name}}"]),
    ):
        said = subprocess.run(["docker", *argv], env=env, capture_output=True, text=True, check=True).stdout.split()
        found += [f"{what} {name}" for name in said if name not in ("kind", "bridge", "host", "none")]
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and int(path.name) != os.getpid():
            try:
                words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found += [f"process {path.name}: {words[:100]}"] if str(folder) in words else []
    return found


def main() -> int:
    folder, rounds = Path(sys.argv[1]).resolve(), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, rounds + 1):
        began = time.monotonic()
        harness(folder, "up", str(EXPERIMENT), "--target", "kind")
        up_s = time.monotonic() - began
        how = "killed" if number % 2 == 0 else "down"
        if how == "killed":
            os.kill(json.loads((folder / ".gpu-harness" / "process.json").read_text())["pid"], signal.SIGKILL)
            deadline = time.monotonic() + GONE_S
            while left(folder) and time.monotonic() < deadline:
                time.sleep(0.5)
        else:
            harness(folder, "down")
        print(f"round {number}: up {up_s:.0f} s, {how} {time.monotonic() - began - up_s:.0f} s", flush=True)
        if found := left(folder):
            print(f"round {number}, {how}: left: {', '.join(found)}")
            return 1
    print(f"{rounds} rounds, nothing left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
