"""``make test-kind``: kind for real, on a machine that has neither Docker nor a registry of images.

Builds what is missing (Debian's Docker engine, in namespaces of its own; kind and Kubernetes from Go modules; a node
image), runs the experiments of ``experiments/kind/`` with ``gpu-harness run --target kind``, compares each verdict with
what it must be, and looks whether anything is left. Experiments that can have the same cluster have it, one after the
other, as they do for somebody who keeps it (``GPU_HARNESS_KIND_KEEP``); ``--anew`` gives each its own. Where there are
four cores there are two clusters at a time: most of an experiment is waiting, and each keeps to its own cluster. Exits
77 with the reason where it cannot run, 1 when something is not as it must be. ``--only NAME`` runs one experiment,
``--machines`` what else can befall a node, ``--only rounds`` goes up and down, and ``--reports DIR`` keeps all folders
elsewhere. ``--built`` has Docker build the images of the fakes from ``fakes/images/Dockerfile``, as on another machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import engine
from base_image import ensure_base
from image_commands import ImageFailed
from node_image import ensure, prepare
from rounds_on_kind import left as docker_leavings

from harness.errors import HarnessError
from harness.stack.build import build
from harness.stack.cache import built_dir
from harness.stack.catalogue import CONTROL_PLANE, KIND, KUBECTL, NODE_IMAGE
from harness.targets.kind.images import BASE_ENV, BUILD_ENV
from harness.targets.kind.kept import CLUSTER_ENV, KEEP_ENV, KeptFolder, cluster_name

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
    "server-aborts": ("fail", "graceful_drain"),
    "node-not-ready": ("pass", None),
    "device-plugin-down": ("pass", None),
    "consolidation": ("pass", None),
    "node-not-ready-default-grace": ("pass", None),
}
"""By experiment: its verdict, and the check that must have made it. They begin in this order. One after the other they
take over a single cluster: the last but one has fewer nodes than the others and could not be the first, the last has
Kubernetes' own timings."""
MACHINES = dict.fromkeys(
    ("node-frozen", "node-off", "node-disconnected", "node-runtime-down", "node-cut-off"), ("pass", None)
)
FOREIGN, ROUNDS = "foreign", "rounds"
"""A cluster of kind as the cluster of others, with the printed role; up and down, again and again."""
CORES_PER_LANE = 2
"""A cluster with a run in it takes a core, and nearly two while it comes up."""
RUN_S, ROUND_S, DOWN_S, WORDS_S = 1500.0, 400.0, 330.0, 2.0


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


def cluster_of(lane: int) -> str:
    return f"{cluster_name()}-{lane}"


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


class Runs:
    """Experiments, one after the other in each lane."""

    def __init__(
        self, folder: Path, env: Mapping[str, str], reports: Path, names: Sequence[str], rounds: int, lanes: int
    ) -> None:
        self._folder = folder
        self._env = env
        self._reports = reports
        self._names = iter(names)
        self._rounds = rounds
        self._lanes = lanes
        self._running: set[subprocess.Popen[bytes]] = set()
        self._mutex = threading.Lock()
        self._first_over = threading.Event()
        self.rows: list[Row] = []
        self.left: list[str] = []
        """Of what Docker has, after the clusters are down."""

    def go(self) -> None:
        with ThreadPoolExecutor(self._lanes) as lanes:
            try:
                for ended in [lanes.submit(self._lane, number) for number in range(1, self._lanes + 1)]:
                    ended.result()
            except BaseException:
                self._names = iter(())
                for process in list(self._running):
                    process.terminate()  # it takes its cluster down
                raise

    def _lane(self, number: int) -> None:
        if number > 1:
            self._until_there_is_a_network()
        while (name := self._next()) is not None:
            self.rows.append(row := self._run(name, cluster_of(number)))
            say(str(row))
        if number == 1:
            self._first_over.set()
        self._down(cluster_of(number))

    def _down(self, cluster: str) -> None:
        """As a person does who has kept a cluster and wants it no more."""
        env = {**self._env, CLUSTER_ENV: cluster}
        argv = [*engine.in_network(self._folder), sys.executable, "-m", "harness.cli", "down"]
        began = time.monotonic()
        ended = subprocess.run(argv, cwd=self._folder, env=env, capture_output=True, text=True)
        left = docker_leavings(self._folder / "nobody", env)
        said = f"{ended.stdout.strip() or ended.stderr.strip()}, {time.monotonic() - began:.0f} s"
        say(f"{said}; left: {', '.join(left) or 'nothing'}")
        self.left += left

    def _next(self) -> str | None:
        with self._mutex:
            return next(self._names, None)

    def _until_there_is_a_network(self) -> None:
        """kind makes one for all its clusters, and two that make it at once get in each other's way."""
        deadline = time.monotonic() + RUN_S
        while subprocess.run(["docker", "network", "inspect", "kind"], env=self._env, capture_output=True).returncode:
            if time.monotonic() > deadline or self._first_over.wait(0.5):
                return

    def _run(self, name: str, cluster: str) -> Row:
        env = {**self._env, CLUSTER_ENV: cluster}
        argv = [*engine.in_network(self._folder), sys.executable]
        if name in (FOREIGN, ROUNDS):
            env.pop(KEEP_ENV, None)
            argv += [str(ROOT / "tests" / "kind" / f"{name}_on_kind.py"), str(self._reports / name), str(self._rounds)]
        else:
            argv += ["-m", "harness.cli", "run", f"experiments/kind/{name}.yaml", "--target", "kind", "--plain"]
            argv += ["--seed", "1", "--reports", str(self._reports)]
        began = time.monotonic()
        log = self._reports / f"{name}.log"
        process = subprocess.Popen(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._running.add(process)
        timing = threading.Thread(target=_write_timed, args=(process.stdout, log, began), daemon=True)
        timing.start()
        try:
            code = _outcome(process, RUN_S if name != ROUNDS else self._rounds * ROUND_S)
        finally:
            self._running.discard(process)
        timing.join(WORDS_S)
        return _row(name, code, time.monotonic() - began, self._reports)


def _outcome(process: subprocess.Popen[bytes], limit_s: float) -> int:
    """Its exit code. One that does not end is told to, so that it takes its cluster down, and is killed in the end."""
    for patience_s, more in ((limit_s, process.terminate), (DOWN_S, process.kill)):
        try:
            return process.wait(patience_s)
        except subprocess.TimeoutExpired:
            more()
    return process.wait()


def _write_timed(words: IO[bytes], log: Path, began: float) -> None:
    """Each line with the second at which it was said, so that a log tells where its time went."""
    with log.open("w") as file:
        for line in words:
            file.write(f"{time.monotonic() - began:6.1f}  {line.decode(errors='replace')}")
            file.flush()


def _last_words(log: Path) -> str:
    lines = [line[8:].strip() for line in log.read_text(errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")


def _row(name: str, code: int, took_s: float, reports: Path) -> Row:
    if name in (FOREIGN, ROUNDS):
        return Row(name, f"exit {code}", took_s, _last_words(reports / f"{name}.log"), code == 0, reports / name)
    folders = sorted((reports / name).glob("*/verdict.json"))
    if not folders:
        return Row(name, f"exit {code}", took_s, _last_words(reports / f"{name}.log"), False, None)
    verdict = json.loads(folders[-1].read_text())
    status, check = (EXPECTED | MACHINES)[name]
    judged = {f["check"]: f["judged"] for f in verdict["findings"]}
    as_expected = verdict["status"] == status and (check is None or judged.get(check) == status)
    return Row(name, verdict["status"], took_s, verdict.get("sentence", ""), as_expected, folders[-1].parent)


def _end(number: int, frame: object) -> None:
    raise SystemExit(f"ended by {signal.Signals(number).name}")


def main() -> int:
    parser = argparse.ArgumentParser(description="kind for real")
    parser.add_argument("--only", choices=[*sorted(EXPECTED | MACHINES), FOREIGN, ROUNDS], action="append")
    parser.add_argument("--machines", action="store_true", help="what else befalls nodes, and a cluster of others")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--lanes", type=int, default=min(2, max(1, cores // CORES_PER_LANE)), help="clusters at a time")
    parser.add_argument("--built", action="store_true", help="the images of the fakes by docker build")
    parser.add_argument("--anew", action="store_true", help="a new cluster for each experiment")
    parser.add_argument("--rounds", type=int, default=20, help="how often --only rounds goes up and down")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports" / "kind")
    args = parser.parse_args()
    if (reason := why_not()) is not None:
        print(f"test-kind cannot run: {reason}", file=sys.stderr)
        return 1 if os.environ.get("REQUIRE") == "1" else CANNOT
    reports: Path = args.reports
    reports.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="gpu-harness-kind-"))
    began = time.monotonic()
    names = args.only or ([*MACHINES, FOREIGN] if args.machines else list(EXPECTED))
    rows: list[Row] = []
    left: list[str] = []
    signal.signal(signal.SIGTERM, _end)
    try:
        with ThreadPoolExecutor(1) as beside:  # which waits for the network, while compilers want the cores
            prepared = beside.submit(prepare, say)
            build([*CONTROL_PLANE, KUBECTL, *NODE_IMAGE, KIND], say)
            prepared.result()
        engine.up(folder)
        os.environ["DOCKER_HOST"] = engine.socket_of(folder)
        image = ensure(say)
        say(f"engine and node image after {time.monotonic() - began:.0f} s")
        env = {**os.environ, "PYTHONUNBUFFERED": "1", "GPU_HARNESS_KIND_IMAGE": image}
        env |= {} if args.anew else {KEEP_ENV: "1"}
        env |= {BUILD_ENV: "1", BASE_ENV: ensure_base(say)} if args.built else {}
        runs = Runs(folder, env, reports, names, args.rounds, args.lanes)
        rows, left = runs.rows, runs.left
        runs.go()
    except (HarnessError, ImageFailed, engine.EngineFailed) as error:
        say(f"stopped: {error}")
    finally:
        engine.down(folder)
        for number in range(1, args.lanes + 1):
            shutil.rmtree(KeptFolder(cluster_of(number)).path, ignore_errors=True)
        left += engine.left(folder)
        shutil.rmtree(folder, ignore_errors=True)
    for row in rows:
        print(row)
    print(f"{time.monotonic() - began:.0f} s in all; left behind: {', '.join(left) or 'nothing'}")
    return 0 if len(rows) == len(names) and all(row.as_expected for row in rows) and not left else 1


if __name__ == "__main__":
    sys.exit(main())
