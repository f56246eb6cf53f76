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

CONTROL_PLANE = (ETCD, KUBE_APISERVER, KUBE_CONTROLLER_MANAGER, KUBE_SCHEDULER)
"""What ``--target controlplane`` runs."""

NODE_IMAGE = (KUBELET, KUBEADM, KUBE_PROXY, CRICTL, COREDNS)
"""What a node image of kind has in it beside the control plane, ``kubectl`` and a container runtime."""

COMPONENTS: dict[str, Component] = {c.name: c for c in (*CONTROL_PLANE, KUBECTL, *NODE_IMAGE, KIND)}
