"""A real Kubernetes control plane as four plain processes on 127.0.0.1: no container, no root.

async with running_control_plane(find_binaries(CONTROL_PLANE), folder) as cluster:
    ...  # cluster.kubeconfig, cluster.url, cluster.token
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from harness.processes.children import Child
from harness.stack.certificates import Authority, Pair, signing_key, write_secret
from harness.stack.control_plane_flags import Layout, Settings, launches
from harness.stack.find import Binaries
from harness.stack.ports import HOST, HeldPorts
from harness.stack.services import Services

ADMIN = "gpu-harness"
"""The user of ``ControlPlane.kubeconfig``, in the group system:masters."""


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A control plane that is up. ``folder`` holds its keys, kubeconfigs and data, and is gone once it is down."""

    url: str
    token: str
    kubeconfig: Path
    authority: Path
    folder: Path
    layout: Layout
    services: Services
    certificates: Authority = field(repr=False)

    def dead(self) -> Child | None:
        """The first of its processes that ended unasked: its name, how it ended, its log."""
        return self.services.dead()

    def user(self, name: str) -> Path:
        """A kubeconfig for one of ``USERS``."""
        return self.layout.kubeconfig(name)


USERS: dict[str, tuple[str, ...]] = {
    ADMIN: ("system:masters",),
    "system:kube-controller-manager": (),
    "system:kube-scheduler": (),
}
"""User and groups. The two components have the rights that Kubernetes itself binds to their names."""


@contextlib.asynccontextmanager
async def running_control_plane(
    binaries: Binaries,
    folder: Path,
    *,
    logs: Path | None = None,
    settings: Settings | None = None,
    without: Collection[str] = (),
) -> AsyncIterator[ControlPlane]:
    """Up and serving for the length of the block. ``folder`` is made, and removed at the end; the logs (by default
    beside it, in ``logs``) stay. ``without`` names components that are not to run (the scheduler, say).
    TargetError, with the program's last lines, when one does not come up."""
    services = Services(logs or folder.parent / "logs")
    with HeldPorts() as ports:
        try:
            control_plane = _prepare(folder, ports, services)
            etcd, apiserver, *others = launches(binaries, control_plane.layout, settings or Settings())
            await services.start(etcd)
            await services.start(apiserver)
            await services.start(*(launch for launch in others if launch.name not in without))
            yield control_plane
        finally:
            await services.stop()
            shutil.rmtree(folder, ignore_errors=True)


def _prepare(folder: Path, ports: HeldPorts, services: Services) -> ControlPlane:
    """Everything that has to lie on disk before the first process starts."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    folder = folder.resolve()
    cluster, etcd, front = (Authority(name, folder) for name in ("cluster-ca", "etcd-ca", "front-proxy-ca"))
    tokens = {user: secrets.token_urlsafe(32) for user in USERS}
    private, public = signing_key(folder, "service-accounts")
    layout = Layout(
        folder=folder,
        ports={name: ports.take() for name in Layout.PORTS},
        cluster_authority=cluster.certificate,
        etcd_authority=etcd.certificate,
        front_proxy_authority=front.certificate,
        serving=cluster.issue("control-plane", hosts=("localhost", HOST, "kubernetes.default.svc", "10.96.0.1")),
        etcd=etcd.issue("etcd", hosts=("localhost", HOST)),
        front_proxy=front.issue("front-proxy-client"),
        service_account_keys=Pair(public, private),
        tokens=folder / "tokens.csv",
    )
    rows = (f'{tokens[user]},{user},{user},"{",".join(groups)}"' for user, groups in USERS.items())
    write_secret(layout.tokens, "\n".join([*rows, ""]).encode())
    for user in USERS:
        write_secret(layout.kubeconfig(user), _kubeconfig(layout, user, tokens[user]))
    return ControlPlane(
        url=layout.url,
        token=tokens[ADMIN],
        kubeconfig=layout.kubeconfig(ADMIN),
        authority=cluster.certificate,
        folder=folder,
        layout=layout,
        services=services,
        certificates=cluster,
    )


def _kubeconfig(layout: Layout, user: str, token: str) -> bytes:
    name = "controlplane"
    cluster = {"server": layout.url, "certificate-authority": str(layout.cluster_authority)}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
            "current-context": name,
        }
    ).encode()
