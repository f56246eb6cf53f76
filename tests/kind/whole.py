"""``make test-kind``: kind for real, on a machine that has neither Docker nor a registry of images.

Builds what is missing (Debian's Docker engine, in namespaces of its own; kind and Kubernetes from Go modules; a node
image), runs the experiments of ``experiments/kind/`` with ``gpu-harness run --target kind``, compares each verdict with
what it must be, and looks whether anything is left. Exits 77 with the reason where it cannot run, 1 when something is
not as it must be. ``--only NAME`` runs one experiment, ``--reports DIR`` keeps their folders elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import engine
from node_image import ImageFailed, ensure

from harness.errors import HarnessError
from harness.stack.build import build
from harness.stack.cache import built_dir
from harness.stack.catalogue import CONTROL_PLANE, KIND, KUBECTL, NODE_IMAGE

ROOT = Path(__file__).resolve().parents[2]
CANNOT = 77
PACKAGES = {
    "dockerd": "docker.io",
    "debootstrap": "debootstrap",
    "tini": "tini",
    "zstd": "zstd",
    "nsenter": "util-linux",
}
EXPECTED = {
    "spot-interruption": ("pass", None),
    "node-not-ready": ("pass", None),
    "consolidation": ("pass", None),
    "device-plugin-down": ("pass", None),
    "server-aborts": ("fail", "graceful_drain"),
    "node-not-ready-default-grace": ("pass", None),
}
"""By experiment: its verdict, and the check that must have made it. The last one runs with Kubernetes' own timings."""
RUN_S = 1500.0


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    status: str
    took_s: float
    sentence: str
    as_expected: bool
    folder: Path | None

    def __str__(self) -> str:
        flag = "" if self.as_expected else "  NOT AS EXPECTED"
        return f"{self.name:30} {self.status:8} {self.took_s:6.0f} s{flag}  {self.sentence}"


def why_not() -> str | None:
    """The reason why it cannot run here."""
    if sys.platform != "linux":
        return "it needs Linux"
    if os.geteuid() != 0:
        return "it needs root"
    if shutil.which("go") is None and not (built_dir() / "kind").exists():
        return "kind and Kubernetes are built with Go, and there is no `go` on PATH"
    missing = [package for program, package in PACKAGES.items() if shutil.which(program) is None]
    if shutil.which("docker") is None:
        missing.append("docker.io")
    if missing and shutil.which("apt-get") is None:
        return f"{', '.join(missing)} missing, and there is no apt-get"
    if missing:
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        argv = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *dict.fromkeys(missing)]
        ended = subprocess.run(argv, env=env, capture_output=True, text=True)
        if ended.returncode != 0:
            return f"apt-get install {' '.join(missing)}: {ended.stderr.strip()[-300:]}"
    return None


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def run_one(name: str, folder: Path, image: str, reports: Path) -> Row:
    env = {**os.environ, "DOCKER_HOST": engine.socket_of(folder), "GPU_HARNESS_KIND_IMAGE": image}
    argv = [*engine.in_network(folder), str(Path(sys.executable).parent / "gpu-harness"), "run"]
    argv += [f"experiments/kind/{name}.yaml", "--target", "kind", "--plain", "--seed", "1", "--reports", str(reports)]
    began = time.monotonic()
    log = reports / f"{name}.log"
    with log.open("wb") as words:
        ended = subprocess.run(argv, cwd=ROOT, env=env, stdout=words, stderr=words, timeout=RUN_S)
    took_s = time.monotonic() - began
    folders = sorted((reports / name).glob("*/verdict.json"))
    if not folders:
        last = log.read_text(errors="replace").strip().splitlines()[-1:]
        return Row(name, f"exit {ended.returncode}", took_s, " ".join(last), False, None)
    verdict = json.loads(folders[-1].read_text())
    status, check = EXPECTED[name]
    judged = {f["check"]: f["judged"] for f in verdict["findings"]}
    as_expected = verdict["status"] == status and (check is None or judged.get(check) == status)
    return Row(name, verdict["status"], took_s, verdict.get("sentence", ""), as_expected, folders[-1].parent)


def main() -> int:
    parser = argparse.ArgumentParser(description="kind for real")
    parser.add_argument("--only", choices=sorted(EXPECTED), action="append")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports" / "kind")
    args = parser.parse_args()
    if (reason := why_not()) is not None:
        print(f"test-kind cannot run: {reason}", file=sys.stderr)
        return 1 if os.environ.get("REQUIRE") == "1" else CANNOT
    reports: Path = args.reports
    reports.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="gpu-harness-kind-"))
    began = time.monotonic()
    rows: list[Row] = []
    try:
        build([*CONTROL_PLANE, KUBECTL, *NODE_IMAGE, KIND], say)
        engine.up(folder)
        os.environ["DOCKER_HOST"] = engine.socket_of(folder)
        image = ensure(say)
        say(f"engine and node image after {time.monotonic() - began:.0f} s")
        for name in args.only or EXPECTED:
            rows.append(run_one(name, folder, image, reports))
            say(str(rows[-1]))
    except (HarnessError, ImageFailed, engine.EngineFailed, subprocess.TimeoutExpired) as error:
        say(f"stopped: {error}")
    finally:
        engine.down(folder)
        left = engine.left(folder)
        shutil.rmtree(folder, ignore_errors=True)
    for row in rows:
        print(row)
    print(f"{time.monotonic() - began:.0f} s in all; left behind: {', '.join(left) or 'nothing'}")
    wanted = len(args.only or EXPECTED)
    return 0 if len(rows) == wanted and all(row.as_expected for row in rows) and not left else 1


if __name__ == "__main__":
    sys.exit(main())
