"""A real kube-apiserver with its etcd and the few controllers that API clients wait for, as processes on 127.0.0.1.

Found in ``KUBEBUILDER_ASSETS`` or on PATH. Only the controllers that furnish a namespace run (its default
ServiceAccount, kube-root-ca.crt, the end of its deletion): all else that happens is what the cases do.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

BINARIES = ("etcd", "kube-apiserver", "kube-controller-manager")
VERSION = "v1.37"
_TOKEN = "conformance"
_CONTROLLERS = "serviceaccount-controller,root-ca-certificate-publisher-controller,namespace-controller"
_UP_S = 60.0


@dataclass(frozen=True, slots=True)
class RealServer:
    url: str
    token: str
    kubeconfig: Path


class Missing(Exception):
    """Binaries that are not there, or not of the version that the embedded server imitates."""


def find_binaries() -> dict[str, Path]:
    """Raises ``Missing`` with what is not there."""
    places = [p for p in (os.environ.get("KUBEBUILDER_ASSETS"),) if p]
    path = os.pathsep.join([*places, os.environ.get("PATH", "")])
    found = {name: shutil.which(name, path=path) for name in BINARIES}
    absent = [name for name, where in found.items() if where is None]
    if absent:
        raise Missing(f"{', '.join(absent)} neither in KUBEBUILDER_ASSETS nor on PATH")
    said = subprocess.run(
        [str(found["kube-apiserver"]), "--version"], capture_output=True, text=True, check=True
    ).stdout
    if f"Kubernetes {VERSION}." not in said:
        raise Missing(f"kube-apiserver is {said.strip()!r}, the cases are written for {VERSION}")
    return {name: Path(str(where)) for name, where in found.items()}


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def real_server(binaries: dict[str, Path]) -> Iterator[RealServer]:
    """Up until the block ends; every process it started is ended then."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        where = Path(folder)
        running: list[subprocess.Popen[bytes]] = []
        try:
            yield _start(binaries, where, running)
        finally:
            for process in reversed(running):
                process.send_signal(signal.SIGTERM if process.poll() is None else 0)
            for process in reversed(running):
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _start(binaries: dict[str, Path], where: Path, running: list[subprocess.Popen[bytes]]) -> RealServer:
    def spawn(name: str, *flags: str) -> None:
        with (where / f"{name}.log").open("wb") as log:
            running.append(subprocess.Popen([str(binaries[name]), *flags], stdout=log, stderr=log, cwd=where))

    etcd, peer, port = _free_port(), _free_port(), _free_port()
    etcd_url, peer_url = f"http://127.0.0.1:{etcd}", f"http://127.0.0.1:{peer}"
    spawn(
        "etcd", "--data-dir", str(where / "etcd"), "--unsafe-no-fsync", "--log-level", "error",
        "--listen-client-urls", etcd_url, "--advertise-client-urls", etcd_url, "--listen-peer-urls", peer_url,
        "--initial-advertise-peer-urls", peer_url, "--initial-cluster", f"default={peer_url}",
    )  # fmt: skip
    key = where / "sa.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
    (where / "tokens.csv").write_text(f'{_TOKEN},gpu-harness,gpu-harness,"system:masters"\n')
    spawn(
        "kube-apiserver", "--etcd-servers", etcd_url, "--secure-port", str(port), "--bind-address", "127.0.0.1",
        "--advertise-address", "127.0.0.1", "--endpoint-reconciler-type", "none",
        "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", str(key),
        "--service-account-signing-key-file", str(key), "--cert-dir", str(where / "certs"),
        "--token-auth-file", str(where / "tokens.csv"), "--authorization-mode", "RBAC",
        "--service-cluster-ip-range", "10.96.0.0/16", "--feature-gates", "GenericWorkload=true",
        "--runtime-config", "scheduling.k8s.io/v1beta1=true",
    )  # fmt: skip
    kubeconfig = _kubeconfig(where, port)
    server = RealServer(f"https://127.0.0.1:{port}", _TOKEN, kubeconfig)
    _wait_ready(server, running, where)
    spawn(
        "kube-controller-manager", "--kubeconfig", str(kubeconfig), "--service-account-private-key-file", str(key),
        "--root-ca-file", str(where / "certs" / "apiserver.crt"), "--bind-address", "127.0.0.1",
        "--secure-port", str(_free_port()), "--leader-elect=false", "--controllers", _CONTROLLERS,
        "--kube-api-qps", "1000", "--kube-api-burst", "2000", "--concurrent-namespace-syncs", "50",
    )  # fmt: skip
    return server


def _kubeconfig(where: Path, port: int) -> Path:
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "real",
        "clusters": [{"name": "real", "cluster": {
            "server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}}],
        "users": [{"name": "real", "user": {"token": _TOKEN}}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "real", "namespace": "default"}}],
    }  # fmt: skip
    path = where / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def _wait_ready(server: RealServer, running: list[subprocess.Popen[bytes]], where: Path) -> None:
    until = time.monotonic() + _UP_S
    port = int(server.url.rpartition(":")[2])
    while time.monotonic() < until:
        for process in running:
            if process.poll() is not None:
                name = Path(str(process.args[0])).name if isinstance(process.args, list) else "?"
                raise RuntimeError(f"{name} ended: " + (where / f"{name}.log").read_text(errors="replace")[-2000:])
        if _ready(port):
            return
        time.sleep(0.2)
    raise RuntimeError("no answer from /readyz: " + (where / "kube-apiserver.log").read_text(errors="replace")[-2000:])


def _ready(port: int) -> bool:
    import http.client
    import ssl

    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=2, context=context)
    try:
        connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {_TOKEN}"})
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
