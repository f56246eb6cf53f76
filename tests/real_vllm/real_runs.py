"""A spot interruption under real vLLM replicas, as they shut down by default, and with time to finish.

The cluster around them is the embedded one; pods of the image ``vllm-cpu`` are real processes. Nothing runs before
SIGTERM (no preStop hook), streams take seconds, and the second replica stays: what is lost is the server's doing. Two
cores are enough: of two streams each replica gets one, and who takes the lost one's place waits for a node first.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from real_install import RealVllm
from real_ran import Ran, play
from real_server import ONE_PROCESS, process_image

RUN_S = 1500
ARGS = {
    "default shutdown": [],
    "--shutdown-timeout 35": ["--shutdown-timeout", "35"],
}
MANIFEST = """
apiVersion: v1
kind: Namespace
metadata: {name: inference}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, namespace: inference, labels: {app: llm}}
spec:
  replicas: 2
  selector: {matchLabels: {app: llm}}
  template:
    metadata: {labels: {app: llm}}
    spec:
      terminationGracePeriodSeconds: 45
      containers:
        - name: vllm
          image: vllm-cpu:0.32.0
          args: ARGS
          ports: [{name: http, containerPort: 8000}]
          resources: {limits: {nvidia.com/gpu: "1"}, requests: {cpu: "4", memory: 32Gi, nvidia.com/gpu: "1"}}
          readinessProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 2, timeoutSeconds: 5}
---
apiVersion: v1
kind: Service
metadata: {name: llm, namespace: inference, labels: {app: llm}}
spec:
  selector: {app: llm}
  ports: [{name: http, port: 80, targetPort: 8000}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: llm, namespace: inference}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {app: llm}}
"""
LOAD = """
title: Two streams at once every eight seconds, each of some seconds, and few while a server starts
duration_s: 80
longest_stream_s: 40
arrivals:
  kind: sequence
  parts:
    - duration_s: 30
      arrivals: {kind: sum, parts: [{kind: constant, rate_per_s: 0.125}, {kind: constant, rate_per_s: 0.125}]}
    - {arrivals: {kind: constant, rate_per_s: 0.04}}
tokens: {prompt: {kind: fixed, tokens: 30}, output: {kind: fixed, tokens: 1800}}
send:
  connect_timeout_s: 5
  first_token_timeout_s: 30
  stall_timeout_s: 20
  deadline_s: 90
  lag_ms_p99_max: 2000
"""


def experiment(places: RealVllm) -> dict[str, Any]:
    image = process_image(places)
    module = "harness.run.chaos"

    def provider(where: str, func: str, **arguments: object) -> dict[str, object]:
        return {"type": "python", "module": f"{module}.{where}", "func": func, "arguments": arguments}

    spot = {"selector": "karpenter.sh/capacity-type=spot", "count": 1}
    return {
        "title": "Real vLLM replicas lose their spot node",
        "description": "Two real vLLM servers as pods of the embedded cluster; one's node gets its notice under load.",
        "tags": ["spot", "drain", "real-vllm"],
        "controls": [{"name": "gpu-harness", "provider": {"type": "python", "module": f"{module}.control"}}],
        "steady-state-hypothesis": {
            "title": "both replicas are Ready",
            "probes": [
                {
                    "type": "probe",
                    "name": "the workload is steady",
                    "tolerance": True,
                    "provider": provider("probes", "workload_steady", after_s=10, ready_min=2),
                }
            ],
        },
        "method": [
            {
                "type": "action",
                "name": "interrupt the spot node",
                "provider": provider("actions", "spot_interruption", after_s=25, nodes=spot, notice_s=50),
            }
        ],
        "rollbacks": [{"type": "action", "name": "heal", "provider": provider("actions", "heal")}],
        "extensions": [
            {
                "name": "gpu-harness",
                "time_scale": 1,
                "workload": {"namespace": "inference", "selector": "app=llm", "service": "llm", "model": "tiny"},
                "load": "load.yaml",
                "manifests": ["llm.yaml"],
                "world": {
                    "pools": [
                        {"name": "spot", "capacity_type": "spot", "gpus": 1, "nodes": 1, "stock": 1},
                        {"name": "on-demand", "capacity_type": "on-demand", "gpus": 1, "nodes": 1, "stock": 2},
                    ],
                    "processes": [
                        {"image": image.image, "command": list(image.command), "env": dict(image.env) | ONE_PROCESS}
                    ],
                },
                "phases": {"warm_up_s": 10, "recovery_s": 90},
                "checks": [{"graceful_drain": {"streams_lost_max": 0}}, {"pdb": {}}],
            }
        ],
    }  # fmt: skip


def run(places: RealVllm, name: str, reports: Path) -> Ran:
    folder = reports / name.strip("-").replace(" ", "-")
    manifest = MANIFEST.replace("ARGS", json.dumps(ARGS[name]))
    return play(name, folder, experiment(places), manifest, LOAD, limit_s=RUN_S)
