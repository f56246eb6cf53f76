"""What runs on a machine, and the files that tell it how: kubelet, containerd, CNI plugins, device plugin. Pure.

Settings that are not a path, a port or a name have their reason here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fakes.device_plugin.plugin import DEVICE_PLUGINS
from fakes.images.python_image import PAUSE
from fakes.nodes.labels import GPU_RESOURCE, pool_labels
from fakes.nodes.machine import Machine
from harness.stack.catalogue import CNI_HOST_LOCAL, CNI_PTP, CONTAINERD, CONTAINERD_SHIM, CTR, KUBELET, RUNC
from harness.targets.node.machine_init import RUN

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
SWITCHES_FILE = "plugin-switches.json"
UNREGISTERED = "karpenter.sh/unregistered=:NoExecute"

# What kubelet 1.37 writes for the whole host (pkg/kubelet/cm, setupKernelTunables) unless it is so already.
SYSCTLS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}

# Defaults of kubelet 1.37, in seconds.
STATUS_UPDATE_S = 10.0
STATUS_REPORT_S = 300.0
LEASE_S = 40.0
EVICTION_TRANSITION_S = 300.0


@dataclass(frozen=True, slots=True)
class Setting:
    """Of one machine. ``programs`` are the paths of real ones by component name; ``cgroup`` is below each hierarchy;
    ``api_address`` is HOST:PORT as seen from machines."""

    machine: Machine
    programs: Mapping[str, str]
    cgroup: str
    time_scale: float
    kubeconfig: Path
    authority: Path
    logs: Path


def init_config(setting: Setting, state: Path) -> dict[str, Any]:
    """For ``machine_init``."""
    return {
        "name": setting.machine.name,
        "state": str(state),
        "logs": str(setting.logs),
        "sysctls": SYSCTLS,
        "programs": _programs(setting),
    }


def _programs(setting: Setting) -> dict[str, Any]:
    path = setting.programs
    folders = dict.fromkeys(str(Path(path[c.name]).parent) for c in (CONTAINERD_SHIM, RUNC))
    env = {"PATH": ":".join([*folders, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"])}
    env["HOME"] = "/root"
    machine = setting.machine
    labels = ",".join(f"{k}={v}" for k, v in pool_labels(machine.pool).items() if not k.startswith("kubernetes.io/"))
    kubelet = [
        path[KUBELET.name],
        f"--config={RUN}/kubelet.json",
        f"--kubeconfig={setting.kubeconfig}",
        f"--hostname-override={machine.name}",
        f"--node-ip={machine.address}",
        f"--node-labels={labels}",
        f"--provider-id={machine.provider_id}",
        f"--cert-dir={RUN}/pki",
        # As Karpenter has its nodes come; it takes the taint away once it knows them.
        *([f"--register-with-taints={UNREGISTERED}"] if machine.provisioned else []),
    ]
    programs = {
        "containerd": {"argv": [path[CONTAINERD.name], "--config", f"{RUN}/containerd.toml"], "env": env},
        "kubelet": {"argv": kubelet, "env": env},
    }
    if machine.pool.gpus:
        programs["device-plugin"] = {"argv": _device_plugin(machine), "env": env | {"PYTHONPATH": ":".join(sys.path)}}
    return programs


def _device_plugin(machine: Machine) -> list[str]:
    return [
        sys.executable, "-m", "fakes.device_plugin", "--node", machine.name, "--dir", str(DEVICE_PLUGINS),
        "--resources", f"{GPU_RESOURCE}={machine.pool.gpus}", "--switches", f"{RUN}/{SWITCHES_FILE}",
    ]  # fmt: skip


def import_image(setting: Setting, archive: Path) -> list[str]:
    """The command that gives an image to the machine's containerd."""
    return [
        setting.programs[CTR.name], "--address", CONTAINERD_SOCKET, "--namespace", "k8s.io", "images", "import",
        str(archive),
    ]  # fmt: skip


def files(setting: Setting) -> dict[str, str]:
    """By name below the machine's folder."""
    return {
        "kubelet.json": json.dumps(kubelet_config(setting), indent=1),
        "containerd.toml": containerd_config(setting),
        "cni/10-pods.conflist": json.dumps(cni_config(setting.machine), indent=1),
        "resolv.conf": "nameserver 127.0.0.1\n",
    }


def kubelet_config(setting: Setting, *, short_of_memory: bool = False) -> dict[str, Any]:
    def clock(scenario_s: float) -> str:
        return f"{scenario_s / setting.time_scale:.3f}s"

    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "nodeStatusUpdateFrequency": clock(STATUS_UPDATE_S),
        "nodeStatusReportFrequency": clock(STATUS_REPORT_S),
        "nodeLeaseDurationSeconds": max(1, round(LEASE_S / setting.time_scale)),
        "evictionPressureTransitionPeriod": clock(EVICTION_TRANSITION_S),
        "cgroupDriver": "cgroupfs",  # there is no systemd in a machine
        "cgroupRoot": f"/{setting.cgroup}",
        "failCgroupV1": False,  # many hosts still have the first version; 1.37 runs on it when told so
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "address": "0.0.0.0",
        "port": 10250,
        "readOnlyPort": 0,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(setting.authority)},
        },
        "authorization": {"mode": "Webhook"},
        "podLogsDir": f"{RUN}/pod-logs",
        "resolvConf": f"{RUN}/resolv.conf",
        "clusterDNS": ["10.96.0.10"],  # nobody answers there; without one each pod gets a warning
        "volumePluginDir": f"{RUN}/volume-plugins",
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,  # there is no kube-proxy
        "serializeImagePulls": False,
        # The machine shares the host's disk, which is none of its business.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "99%" if short_of_memory else "100Mi",
            "nodefs.available": "0%",
            "imagefs.available": "0%",
        },
    }


def containerd_config(setting: Setting) -> str:
    """Version 3, as containerd 2 has it. ``restrict_oom_score_adj``: without CAP_SYS_RESOURCE, as in many containers
    and virtual machines, nobody may lower it, and every sandbox would fail."""
    plugins = dict.fromkeys(str(Path(setting.programs[c.name]).parent) for c in (CNI_PTP, CNI_HOST_LOCAL))
    return f"""version = 3
root = "{RUN}/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.blockfile", "io.containerd.nri.v1.nri",
  "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
  address = "{CONTAINERD_SOCKET}"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{PAUSE}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins."io.containerd.cri.v1.runtime".containerd]
  default_runtime_name = "runc"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  SystemdCgroup = false
  BinaryName = "{setting.programs[RUNC.name]}"
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = {json.dumps(list(plugins))}
  conf_dir = "{RUN}/cni"
  use_internal_loopback = true
"""


def pod_subnet(machine: Machine) -> str:
    return machine.pod_address(0).rpartition(".")[0] + ".0/24"


def cni_config(machine: Machine) -> dict[str, Any]:
    """A cable from each pod to its machine. Nothing is hidden behind the machine's address: pods are reached by their
    own."""
    ranges = [[{"subnet": pod_subnet(machine)}]]
    ipam = {"type": CNI_HOST_LOCAL.name, "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    plugin = {"type": CNI_PTP.name, "ipMasq": False, "ipam": ipam}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [plugin]}
