"""What a kind cluster is given before the experiment's own objects: the fake device plugin, and the front."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import yaml

from fakes.config import WorldConfig
from harness.kube.port import CONFIG_MAP, Json, Kube, Resource
from harness.targets.controlplane.objects import SYSTEM_NAMESPACE
from harness.targets.kind.cluster_file import GATEWAY_PORT
from harness.targets.kind.containers import SWITCHES_FILE, SWITCHES_FOLDER

IMAGE, FRONT_IMAGE = "localhost/gpu-harness:1", "localhost/gpu-harness-front:1"
DAEMON_SET = Resource("apps", "v1", "daemonsets", "DaemonSet", True)
FRONT = "front"
API_ON_ITS_NODE = "https://127.0.0.1:6443"
"""kubeadm's certificate of the API server names this address; kind writes it in for the port that it publishes."""
EVERYWHERE = [{"operator": "Exists"}]


def device_plugins(config: WorldConfig) -> list[Json]:
    """A DaemonSet for each number of GPUs that nodes have."""
    counts = sorted({pool.gpus for pool in config.pools if pool.gpus})
    return [_device_plugin(count) for count in counts]


def _device_plugin(gpus: int) -> Json:
    name = f"gpu-device-plugin-{gpus}"
    mounts = {"kubelet": "/var/lib/kubelet/device-plugins", "switches": SWITCHES_FOLDER}
    pod: Json = {
        "nodeSelector": {"nvidia.com/gpu.count": str(gpus)},
        "hostNetwork": True,  # it needs none, and so does not wait for the node's: GPUs are there with the first Ready
        "tolerations": EVERYWHERE,
        "priorityClassName": "system-node-critical",
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "plugin",
                "image": IMAGE,
                "imagePullPolicy": "Never",
                "command": ["python3", "-m", "fakes.device_plugin", "--resources", f"nvidia.com/gpu={gpus}"],
                "args": ["--switches", f"{SWITCHES_FOLDER}/{SWITCHES_FILE}"],
                "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
                "volumeMounts": [{"name": volume, "mountPath": path} for volume, path in mounts.items()],
            }
        ],
        "volumes": [
            {"name": volume, "hostPath": {"path": path, "type": "DirectoryOrCreate"}} for volume, path in mounts.items()
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            # Nodes that are away must not hold back the others.
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": "100%"}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
        },
    }


def front_files(files: Mapping[str, str | bytes]) -> Json:
    encoded = {
        name: base64.b64encode(content.encode() if isinstance(content, str) else content).decode()
        for name, content in files.items()
    }
    meta = {"name": FRONT, "namespace": SYSTEM_NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": encoded}


def front_pod(node: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": FRONT, "namespace": SYSTEM_NAMESPACE, "labels": {"app": FRONT}},
        "spec": {
            "nodeName": node,
            "hostNetwork": True,
            "tolerations": EVERYWHERE,
            "priorityClassName": "system-cluster-critical",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": FRONT,
                    "image": FRONT_IMAGE,
                    "imagePullPolicy": "Never",
                    "command": ["python3", "-m", "harness.targets.kind.front", "/files"],
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "readinessProbe": {"httpGet": {"path": "/health", "port": GATEWAY_PORT}, "periodSeconds": 1},
                    "volumeMounts": [{"name": "files", "mountPath": "/files", "readOnly": True}],
                }
            ],
            "volumes": [{"name": "files", "secret": {"secretName": FRONT}}],
        },
    }


def kubeconfig_on_the_node(kubeconfig: str) -> str:
    """The same rights, at the API server's own address."""
    found = yaml.safe_load(kubeconfig)
    for cluster in found["clusters"]:
        cluster["cluster"]["server"] = API_ON_ITS_NODE
    return str(yaml.safe_dump(found))


async def front_proxy_authority(kube: Kube) -> str:
    """Who signs the certificate with which the API server asks the servers behind its APIServices."""
    found = await kube.get(CONFIG_MAP, "extension-apiserver-authentication", "kube-system")
    return str(found["data"]["requestheader-client-ca-file"])
