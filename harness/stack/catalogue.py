"""The real programs that the harness can find, build and start."""

from __future__ import annotations

from harness.stack.component import Component

KUBERNETES = "1.37"
_KUBERNETES_BUILT = "1.37.2"
"""What controlplane/kube/go.mod pins."""

_major, _minor, _ = _KUBERNETES_BUILT.split(".")
_STAMP = {
    "k8s.io/component-base/version.gitVersion": f"v{_KUBERNETES_BUILT}",
    "k8s.io/component-base/version.gitMajor": _major,
    "k8s.io/component-base/version.gitMinor": _minor,
    # The Go module carries no commit; without any, user agents end in an unexpanded placeholder.
    "k8s.io/component-base/version.gitCommit": "0" * 40,
    "k8s.io/component-base/version.gitTreeState": "archive",
    "k8s.io/client-go/pkg/version.gitVersion": f"v{_KUBERNETES_BUILT}",
}
"""Without these the server calls itself v0.0.0-master, and clients that compare versions misbehave."""


def _kubernetes(name: str, version_args: tuple[str, ...] = ("--version",)) -> Component:
    return Component(
        name=name,
        module="kube",
        package=f"k8s.io/kubernetes/cmd/{name}",
        releases=(KUBERNETES,),
        version_args=version_args,
        ldflags=" ".join(["-s -w", *(f"-X {key}={value}" for key, value in _STAMP.items())]),
    )


ETCD = Component(name="etcd", module="etcd", package="go.etcd.io/etcd/server/v3", releases=("3.6", "3.7"))
KUBE_APISERVER = _kubernetes("kube-apiserver")
KUBE_CONTROLLER_MANAGER = _kubernetes("kube-controller-manager")
KUBE_SCHEDULER = _kubernetes("kube-scheduler")
KUBECTL = _kubernetes("kubectl", ("version", "--client"))
KUBELET = _kubernetes("kubelet")
KUBEADM = _kubernetes("kubeadm", ("version", "-o", "short"))
KUBE_PROXY = _kubernetes("kube-proxy")
KIND = Component("kind", "kind", "sigs.k8s.io/kind", releases=("0.33",))
CRICTL = Component(
    "crictl", "cri-tools", "sigs.k8s.io/cri-tools/cmd/crictl", releases=("1.36",),
    ldflags="-s -w -X sigs.k8s.io/cri-tools/pkg/version.Version=v1.36.0",
)  # fmt: skip
COREDNS = Component("coredns", "coredns", "github.com/coredns/coredns", releases=("1.14",), version_args=("-version",))

_CONTAINERD = "2.3.4"
"""What controlplane/containerd/go.mod pins; kind v0.33 has the same."""


def _containerd(name: str, version_args: tuple[str, ...] = ("--version",)) -> Component:
    return Component(
        name=name,
        module="containerd",
        package=f"github.com/containerd/containerd/v2/cmd/{name}",
        releases=("2.3",),
        version_args=version_args,
        ldflags=f"-s -w -X github.com/containerd/containerd/v2/version.Version={_CONTAINERD}",
        # Snapshotters that no node of ours uses; btrfs would need headers of the kernel's.
        tags=("no_aufs", "no_zfs", "no_btrfs", "no_devmapper"),
    )


def _cni_plugin(name: str, folder: str) -> Component:
    return Component(
        name=name,
        module="cni",
        package=f"github.com/containernetworking/plugins/plugins/{folder}/{name}",
        releases=("1",),
        version_args=("--version",),
        ldflags="-s -w -X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=v1.9.1",
    )


CONTAINERD = _containerd("containerd")
CONTAINERD_SHIM = _containerd("containerd-shim-runc-v2", ("-v",))
CTR = _containerd("ctr")
RUNC = Component(
    name="runc",
    module="runc",
    package="github.com/opencontainers/runc",
    releases=("1.4",),
    ldflags="-s -w -X main.version=1.4.3",
    # The kubelet has every sandbox confined by seccomp; needs the headers of libseccomp.
    tags=("seccomp",),
    cgo=True,
)
CNI_PTP = _cni_plugin("ptp", "main")
CNI_HOST_LOCAL = _cni_plugin("host-local", "ipam")

NODE = (KUBELET, CONTAINERD, CONTAINERD_SHIM, CTR, RUNC, CNI_PTP, CNI_HOST_LOCAL)
"""What a node runs on ``--target node``."""

CONTROL_PLANE = (ETCD, KUBE_APISERVER, KUBE_CONTROLLER_MANAGER, KUBE_SCHEDULER)
"""What ``--target controlplane`` runs."""

NODE_IMAGE = (KUBELET, KUBEADM, KUBE_PROXY, CRICTL, COREDNS)
"""What a node image of kind has in it beside the control plane, ``kubectl`` and a container runtime."""

COMPONENTS: dict[str, Component] = {c.name: c for c in (*CONTROL_PLANE, KUBECTL, *NODE, *NODE_IMAGE, KIND)}
"""By name: all that can be built."""
