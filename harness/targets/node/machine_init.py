"""Process 1 of a machine: sets its mounts up, starts and stops its programs, and buries the dead.

``python -m harness.targets.node.machine_init FILE`` runs as the first process of its own mount, network, PID, UTS and
IPC namespaces; with it, all of them end. It stays small (the standard library alone): there is one for each machine.

FILE is JSON: ``state`` (the machine's folder), ``logs``, ``name``, ``sysctls``, and ``programs``: name to argv and env.
Orders come over ``STATE/orders``, one JSON object a line: ``{"op": "start" | "stop" | "signal" | "run" | "state", …}``.
A program that ends unasked is started again a second later, as systemd would.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

RUN = Path("/run/node")
"""Where the machine's folder is within the machine: short enough for unix sockets, whatever the path outside."""
AGAIN_S = 1.0
_KEPT = 2000


class Machine:
    def __init__(self, config: dict[str, Any]) -> None:
        self._name = str(config["name"])
        self._state = Path(config["state"])
        self._programs: dict[str, dict[str, Any]] = config["programs"]
        self._sysctls: dict[str, str] = config["sysctls"]
        self._pids: dict[str, int] = {}
        self._wanted: set[str] = set()
        self._lock = threading.RLock()
        self._log = (self._state / "init.log").open("a")
        self._logs = Path(config["logs"])

    def set_up(self) -> None:
        socket.sethostname(self._name)
        _mount("--make-rshared", "/")
        _mount("-t", "tmpfs", "tmpfs", "/run")
        # The kubelet links all containers' logs in /var/log/containers, and takes what it finds there for its own.
        _mount("-t", "tmpfs", "tmpfs", "/var/log")
        RUN.mkdir()
        _mount("--bind", str(self._state), str(RUN))
        self._own_var_lib()
        (RUN / "boot_id").write_text(f"{uuid.uuid4()}\n")  # a new one for each boot: the kubelet reports it
        _mount("--bind", str(RUN / "boot_id"), "/proc/sys/kernel/random/boot_id")
        if Path("/etc/machine-id").exists():
            _mount("--bind", str(RUN / "machine-id"), "/etc/machine-id")
        for name, value in self._sysctls.items():
            # The kubelet sets these for the whole host, unless they are as it wants them already.
            file = RUN / "sysctl" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{value}\n")
            _mount("--bind", str(file), f"/proc/sys/{name}")
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")  # of this network namespace alone

    def _own_var_lib(self) -> None:
        """``/var/lib/kubelet`` is a constant of the kubelet's, ``/var/lib/cni`` one of the CNI plugins'. Neither need
        be on the host, nor is made there."""
        for folder in ("var/kubelet", "var/cni", "var/upper/kubelet", "var/upper/cni", "var/work"):
            (RUN / folder).mkdir(parents=True, exist_ok=True)
        layers = f"lowerdir=/var/lib,upperdir={RUN}/var/upper,workdir={RUN}/var/work"
        _mount("-t", "overlay", "overlay", "-o", layers, "/var/lib")
        for name in ("kubelet", "cni"):
            _mount("--bind", str(RUN / "var" / name), f"/var/lib/{name}")

    def serve(self) -> None:
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(RUN / "orders.part"))
        listening.listen(16)
        (RUN / "orders.part").rename(RUN / "orders")
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def bury(self) -> None:
        """Of process 1 alone is it asked to wait for everybody whose parent is gone."""
        while True:
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                time.sleep(0.1)
                continue
            with self._lock:
                for name in [name for name, of in self._pids.items() if of == pid]:
                    del self._pids[name]
                    self._say(f"{name} ended with {os.waitstatus_to_exitcode(status)}")
                    if name in self._wanted:
                        threading.Timer(AGAIN_S, self._again, (name,)).start()

    def _again(self, name: str) -> None:
        with self._lock:
            if name in self._wanted and name not in self._pids:
                self._start(name)

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rw") as lines:
            for line in lines:
                try:
                    answer = self._obey(json.loads(line))
                except (OSError, KeyError, ValueError) as error:
                    answer = {"error": f"{type(error).__name__}: {error}"}
                lines.write(json.dumps(answer) + "\n")
                lines.flush()

    def _obey(self, order: dict[str, Any]) -> dict[str, Any]:
        name = str(order.get("name", ""))
        match order["op"]:
            case "run":
                return self._run(order["argv"])
            case "state":
                with self._lock:
                    return {"pids": dict(self._pids)}
            case "start":
                with self._lock:
                    self._wanted.add(name)
                    if name not in self._pids:
                        self._start(name)
            case "stop":
                with self._lock:
                    self._wanted.discard(name)
                    self._signal(name, signal.SIGCONT)  # one that stands still would not hear the next
                    self._signal(name, signal.Signals[order.get("signal", "SIGKILL")])
            case "signal":
                with self._lock:
                    self._signal(name, signal.Signals[order["signal"]])
            case op:
                raise ValueError(f"no such order: {op}")
        return {}

    def _start(self, name: str) -> None:
        program = self._programs[name]
        with (self._logs / f"{self._name}-{name}.log").open("ab") as log:
            process = subprocess.Popen(
                program["argv"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env=program["env"],
            )  # fmt: skip
        process.returncode = 0  # buried with all others
        self._pids[name] = process.pid
        self._say(f"{name} is process {process.pid}")

    def _signal(self, name: str, number: signal.Signals) -> None:
        if name in self._pids:
            os.kill(self._pids[name], number)

    def _run(self, argv: list[str]) -> dict[str, Any]:
        """To its end, whose code ``bury`` may be told instead of us: so it goes into a file."""
        code = RUN / f"run-{uuid.uuid4()}"
        script = 'out=$("$@" 2>&1); echo $? >"$CODE.part"; printf %s "$out" >>"$CODE.part"; mv "$CODE.part" "$CODE"'
        process = subprocess.Popen(
            ["sh", "-c", script, "sh", *argv], stdin=subprocess.DEVNULL, env={**os.environ, "CODE": str(code)}
        )
        process.returncode = 0
        while not code.exists():
            time.sleep(0.02)
        ended, _, said = code.read_text(errors="replace").partition("\n")
        code.unlink()
        return {"code": int(ended), "said": said[-_KEPT:]}

    def _say(self, what: str) -> None:
        self._log.write(f"{time.time():.3f} {what}\n")
        self._log.flush()


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def main() -> None:
    machine = Machine(json.loads(Path(sys.argv[1]).read_text()))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a machine is switched off, not asked
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    machine.set_up()
    threading.Thread(target=machine.serve, daemon=True).start()
    machine.bury()


if __name__ == "__main__":
    main()
