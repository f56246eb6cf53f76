"""The command lines of etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

Every flag that is not a file, a port or a name has its reason here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from harness.stack.catalogue import ETCD, KUBE_APISERVER, KUBE_CONTROLLER_MANAGER, KUBE_SCHEDULER
from harness.stack.certificates import Pair
from harness.stack.controller_periods import NODES_PER_S, PERIODS_S
from harness.stack.find import Binaries
from harness.stack.ports import HOST
from harness.stack.services import Health, Launch

FRONT_PROXY_CLIENT = "front-proxy-client"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the files and ports of one control plane are."""

    PORTS: ClassVar[tuple[str, ...]] = (
        "etcd", "etcd-peer", "etcd-health", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
    )  # fmt: skip

    folder: Path
    ports: Mapping[str, int]
    cluster_authority: Path
    etcd_authority: Path
    front_proxy_authority: Path
    serving: Pair
    etcd: Pair
    front_proxy: Pair
    service_account_keys: Pair
    """``certificate`` is the public key here."""
    tokens: Path

    @property
    def url(self) -> str:
        return self.https("kube-apiserver")

    def https(self, name: str) -> str:
        return f"https://{HOST}:{self.ports[name]}"

    def kubeconfig(self, user: str) -> Path:
        return self.folder / f"{user.replace(':', '-')}.kubeconfig"


@dataclass(frozen=True, slots=True)
class Settings:
    """``time_scale``: scenario seconds per clock second, by which whatever the components count is shorter.

    ``gangs`` has the API server know PodGroups and ``scheduler_gangs`` the scheduler obey them: beta in 1.37, and off
    by default. A scheduler that does not obey binds the members of a gang one by one.
    """

    time_scale: float = 1.0
    gangs: bool = True
    scheduler_gangs: bool = True
    gates: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)
    """Further feature gates: of ``all`` components, then what one of them, by its name, has otherwise."""
    more: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Further flags by component name; they come last, so they win."""


def launches(binaries: Binaries, layout: Layout, settings: Settings) -> Iterator[Launch]:
    """In the order of their start; the last two may start together."""
    secure = Health(f"{layout.https('kube-apiserver')}/readyz", layout.cluster_authority)
    etcd = (binaries.path(ETCD), *_etcd(layout))
    yield Launch(ETCD.name, etcd, _health_of_etcd(layout), remove=layout.folder)
    api_flags = (*_apiserver(layout, settings), *settings.more.get(KUBE_APISERVER.name, ()))
    yield Launch(KUBE_APISERVER.name, (binaries.path(KUBE_APISERVER), *api_flags), secure)
    for component, flags in (
        (KUBE_CONTROLLER_MANAGER, _controller_manager(layout, settings)),
        (KUBE_SCHEDULER, _scheduler(layout, settings)),
    ):
        health = Health(f"{layout.https(component.name)}/healthz", layout.cluster_authority)
        more = settings.more.get(component.name, ())
        yield Launch(component.name, (binaries.path(component), *flags, *more), health)


def _etcd(layout: Layout) -> list[str]:
    client, peer = layout.https("etcd"), layout.https("etcd-peer")
    tls = {"cert-file": layout.etcd.certificate, "key-file": layout.etcd.key, "trusted-ca-file": layout.etcd_authority}
    return [
        f"--data-dir={layout.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        f"--listen-metrics-urls=http://{HOST}:{layout.ports['etcd-health']}",
        # Whoever reaches etcd without a certificate has gone around RBAC.
        *(f"--{kind}{name}={path}" for kind in ("", "peer-") for name, path in tls.items()),
        "--client-cert-auth=true",
        "--peer-client-cert-auth=true",
        "--socket-reuse-port=true",  # see harness.stack.ports
        "--unsafe-no-fsync=true",  # the data is thrown away
        "--log-level=warn",
    ]


def _health_of_etcd(layout: Layout) -> Health:
    return Health(f"http://{HOST}:{layout.ports['etcd-health']}/readyz")


def _apiserver(layout: Layout, settings: Settings) -> list[str]:
    gangs = ["--runtime-config=scheduling.k8s.io/v1beta1=true"] if settings.gangs else []
    return [
        *_serving(layout, "kube-apiserver"),
        f"--advertise-address={HOST}",
        "--endpoint-reconciler-type=none",  # a loopback address cannot stand in an EndpointSlice
        f"--etcd-servers={layout.https('etcd')}",
        f"--etcd-cafile={layout.etcd_authority}",
        f"--etcd-certfile={layout.etcd.certificate}",
        f"--etcd-keyfile={layout.etcd.key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={layout.service_account_keys.certificate}",
        f"--service-account-signing-key-file={layout.service_account_keys.key}",
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--token-auth-file={layout.tokens}",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        # Aggregated APIs, e.g. custom.metrics.k8s.io, and how they know that it is this server that calls them.
        f"--client-ca-file={layout.cluster_authority}",
        f"--requestheader-client-ca-file={layout.front_proxy_authority}",
        f"--requestheader-allowed-names={FRONT_PROXY_CLIENT}",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={layout.front_proxy.certificate}",
        f"--proxy-client-key-file={layout.front_proxy.key}",
        # Added to every pod that does not say otherwise; five minutes of the scenario.
        f"--default-not-ready-toleration-seconds={_whole_s(settings, 300)}",
        f"--default-unreachable-toleration-seconds={_whole_s(settings, 300)}",
        *gangs,
        *_feature_gates(settings, KUBE_APISERVER.name, settings.gangs),
    ]


def _controller_manager(layout: Layout, settings: Settings) -> list[str]:
    kubeconfig = layout.kubeconfig("system:kube-controller-manager")
    return [
        *_serving(layout, "kube-controller-manager"),
        *_client(kubeconfig),
        f"--service-account-private-key-file={layout.service_account_keys.key}",
        f"--root-ca-file={layout.cluster_authority}",
        "--use-service-account-credentials=true",  # each controller has its own rights, as in a real cluster
        *_periods(settings),
        *_feature_gates(settings, KUBE_CONTROLLER_MANAGER.name, settings.gangs),
    ]


def _periods(settings: Settings) -> list[str]:
    """What is left at its default says so by not being here: nothing at a time scale of 1."""
    if settings.time_scale == 1:
        return []
    periods = (f"--{name}={seconds / settings.time_scale:.3f}s" for name, seconds in PERIODS_S.items())
    rates = (f"--{name}={rate * settings.time_scale:.3f}" for name, rate in NODES_PER_S.items())
    return [*periods, *rates]


def _whole_s(settings: Settings, scenario_s: float) -> int:
    return max(1, round(scenario_s / settings.time_scale))


def _scheduler(layout: Layout, settings: Settings) -> list[str]:
    kubeconfig = layout.kubeconfig("system:kube-scheduler")
    return [
        *_serving(layout, "kube-scheduler"),
        *_client(kubeconfig),
        # How often a pod without room is looked at again, though nothing has happened; 5 min by default.
        f"--pod-max-in-unschedulable-pods-duration={300 / settings.time_scale:.3f}s",
        *_feature_gates(settings, KUBE_SCHEDULER.name, settings.gangs and settings.scheduler_gangs),
    ]


def _serving(layout: Layout, name: str) -> list[str]:
    return [
        f"--bind-address={HOST}",
        f"--secure-port={layout.ports[name]}",
        "--permit-port-sharing=true",  # see harness.stack.ports
        f"--tls-cert-file={layout.serving.certificate}",
        f"--tls-private-key-file={layout.serving.key}",
    ]


def _client(kubeconfig: Path) -> list[str]:
    """The defaults for calls per second (20 and 50) are meant to spare a server that others share, and would starve a
    large test."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    ]


def _feature_gates(settings: Settings, component: str, gangs: bool) -> list[str]:
    gates = {"GenericWorkload": True} if gangs else {}
    gates |= {**settings.gates.get("all", {}), **settings.gates.get(component, {})}
    return [f"--feature-gates={','.join(f'{gate}={str(on).lower()}' for gate, on in gates.items())}"] if gates else []
