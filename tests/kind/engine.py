"""A Docker engine of our own, in mount, network, process, host name and IPC namespaces of its own.

``python tests/kind/engine.py up|down|left FOLDER``. Its socket is ``FOLDER/docker.sock``; containers, bridges and rules
of its network live in its namespaces, so nothing of it is left on the machine when its first process is killed. What
cannot be in a namespace (cgroups of version 1, folders that it insists on) is made by ``up`` and removed by ``down``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CGROUPS = Path("/sys/fs/cgroup")
CGROUP = "gpu-harness-kind"
SHARES, SHARES_MIN, PER_NICE = 4 * 1024, 2, 1.25
"""All containers together weigh what four processes of our own priority do. With one share, the default, three
kubelets, a control plane and the model servers would get no more time than a single busy process beside them. A process
has 1024, and a quarter more or less for each step of its niceness."""
WRITTEN_TO = ("/etc/docker", "/opt/containerd")
INSISTED_ON = ("/lib/modules", *WRITTEN_TO)
"""kind mounts the first into its nodes, the engine writes to the others."""
UP_S, DOWN_S = 60.0, 20.0
DISK_GIB, MEMORY_GIB = 12, 14
"""Where so much memory is available, the engine's disk lies in it: a cluster takes 6 GiB of it. On a real disk each end
of a container waits until all that was written is on it, which nobody will read again: 20 to 60 s for a cluster."""


class EngineFailed(Exception):
    """In words for a person."""


def cgroup_of(folder: Path) -> str:
    """One for each engine, so that two at a time do not remove each other's."""
    return f"{CGROUP}-{hashlib.sha256(str(folder).encode()).hexdigest()[:6]}"


def socket_of(folder: Path) -> str:
    return f"unix://{folder / 'docker.sock'}"


def up(folder: Path) -> None:
    for name in ("data", "exec"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    made = [path for path in INSISTED_ON if not Path(path).exists()]
    for path in made:
        Path(path).mkdir(parents=True)
    (folder / "made.json").write_text(json.dumps(made))
    _make_cgroups(cgroup_of(folder))
    log = (folder / "engine.log").open("ab")
    argv = ["unshare", "--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"]
    argv += [sys.executable, str(HERE / "engine.py"), "_first", str(folder)]
    outer = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + UP_S
    while (first := _child_of(outer.pid)) is None and time.monotonic() < deadline and outer.poll() is None:
        time.sleep(0.02)
    (folder / "engine.json").write_text(json.dumps({"outer": outer.pid, "first": first}))
    while not _answers(folder):
        if outer.poll() is not None or time.monotonic() > deadline:
            words = "\n".join((folder / "engine.log").read_text(errors="replace").splitlines()[-15:])
            raise EngineFailed(f"the Docker engine did not come up:\n{words}")
        time.sleep(0.1)


def down(folder: Path) -> None:
    pids = _pids(folder)
    if (first := pids.get("first")) is not None and _is_ours(first, folder):
        os.kill(first, signal.SIGKILL)
        deadline = time.monotonic() + DOWN_S
        while Path(f"/proc/{first}").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
    _remove_cgroups(cgroup_of(folder))
    for name in ("exec", "docker.sock", "dockerd.pid", "engine.json"):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    made = folder / "made.json"
    if made.exists():
        for path in json.loads(made.read_text()):
            shutil.rmtree(path, ignore_errors=True)
        made.unlink()


def in_network(folder: Path) -> list[str]:
    """What a command begins with that must see the ports of its containers at 127.0.0.1."""
    return ["nsenter", "-t", str(_pids(folder)["first"]), "-n", "--"]


def left(folder: Path) -> list[str]:
    """What is there of an engine that should be gone: processes, mounts, cgroups, links."""
    found = processes_of(folder)
    mounts = Path("/proc/mounts").read_text().splitlines()
    found += [f"mount {line.split()[1]}" for line in mounts if str(folder) in line]
    found += [f"cgroup {path}" for path in CGROUPS.glob(f"*/{cgroup_of(folder)}")]
    links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True).stdout.splitlines()
    return found + [f"link {line.split()[0]}" for line in links if line.startswith(("docker", "br-", "veth"))]


def processes_of(folder: Path) -> list[str]:
    """But our own, those that name it."""
    return [f"process {pid}: {words[:100]}" for pid, words in _processes() if str(folder) in words]


def _first(folder: Path) -> None:
    """The first process of the namespaces. Becomes a small init with the engine below it."""
    subprocess.run(["mount", "--make-rshared", "/"], check=True)
    for path in ("/run", *WRITTEN_TO):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", path], check=True)
    if _available_gib() >= MEMORY_GIB:
        disk = ["mount", "-t", "tmpfs", "-o", f"size={DISK_GIB}g", "tmpfs", str(folder / "data")]
        subprocess.run(disk, check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    runtime = HERE / "runc_without_resource.py"
    os.execvp(
        "tini",
        [
            "tini", "-s", "--", "dockerd", "--data-root", str(folder / "data"), "--exec-root", str(folder / "exec"),
            "-p", str(folder / "dockerd.pid"), "-H", socket_of(folder), "--cgroup-parent", f"/{cgroup_of(folder)}",
            "--exec-opt", "native.cgroupdriver=cgroupfs", "--oom-score-adjust", "0",
            # Addresses that are unlikely to be anybody's: this network is no part of the machine's anyway.
            "--bip", "172.30.0.1/24", "--default-address-pool", "base=172.31.0.0/16,size=24",
            "--add-runtime", f"lesser={runtime}", "--default-runtime", "lesser",
        ],
    )  # fmt: skip


def _available_gib() -> float:
    (line,) = [line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable:")]
    return int(line.split()[1]) / 2**20


def _make_cgroups(name: str) -> None:
    if (CGROUPS / "cgroup.controllers").exists():
        return  # version 2: the engine makes its own, and they go with its processes
    for hierarchy in CGROUPS.iterdir():
        if hierarchy.is_dir() and hierarchy.name != "unified":
            (hierarchy / name).mkdir(exist_ok=True)
    (CGROUPS / "cpu" / name / "cpu.shares").write_text(str(max(SHARES_MIN, round(SHARES / PER_NICE ** os.nice(0)))))
    for file in ("cpuset.cpus", "cpuset.mems"):
        (CGROUPS / "cpuset" / name / file).write_text((CGROUPS / "cpuset" / file).read_text())


def _remove_cgroups(name: str) -> None:
    deadline = time.monotonic() + DOWN_S
    while roots := list(CGROUPS.glob(f"*/{name}")):
        for root in roots:
            for path in sorted(root.rglob("*/"), key=lambda p: -len(p.parts)):
                _rmdir(path)
            _rmdir(root)
        if time.monotonic() > deadline:
            return
        time.sleep(0.1)


def _rmdir(path: Path) -> None:
    try:
        path.rmdir()
    except OSError:
        return  # not empty yet: looked at again


def _pids(folder: Path) -> dict[str, int]:
    try:
        found: dict[str, int] = json.loads((folder / "engine.json").read_text())
    except (OSError, ValueError):
        return {}
    return found


def _is_ours(pid: int, folder: Path) -> bool:
    return any(number == pid and str(folder) in words for number, words in _processes())


def _processes() -> list[tuple[int, str]]:
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and int(path.name) != os.getpid():
            try:
                words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            found.append((int(path.name), words))
    return found


def _child_of(pid: int) -> int | None:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


def _answers(folder: Path) -> bool:
    env = {**os.environ, "DOCKER_HOST": socket_of(folder)}
    said = subprocess.run(["docker", "version"], env=env, capture_output=True)
    return said.returncode == 0


def main() -> int:
    verb, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    if verb == "_first":
        _first(folder)
    elif verb == "up":
        up(folder)
        print(f"DOCKER_HOST={socket_of(folder)}")
    elif verb == "down":
        down(folder)
    else:
        found = left(folder)
        print("\n".join(found) or "nothing is left")
        return 1 if found else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
