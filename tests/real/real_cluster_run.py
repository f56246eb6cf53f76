"""The experiment of ``make test-real``, and a run of it: two real vLLM servers as pods under a budget. The node of one
loses its power in a burst, and the other's node is drained while the first has no successor yet.

The same file runs on real kubelets and on the embedded cluster, where its pods are processes: only the target differs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from real_install import RealVllm
from real_ran import Ran, play
from real_server import ONE_PROCESS, process_image

RUN_S = 2400
POWER_LOSS_S, DRAIN_S, LOAD_S = 30, 90, 390
"""The node is NotReady some 52 s after it fell silent, which is when budgets and endpoints hear of it."""
LOST = {"node": "off", "embedded": "frozen"}
"""What is done to the machine: a hollow one has no power to lose, but can stand still for good."""
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
      terminationGracePeriodSeconds: 90
      tolerations:
        - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 10}
        - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 10}
      containers:
        - name: vllm
          image: vllm-cpu:0.32.0
          args: [--shutdown-timeout, "60", --max-num-seqs, "8"]
          ports: [{name: http, containerPort: 8000}]
          resources: {limits: {nvidia.com/gpu: "1"}}
          readinessProbe: {httpGet: {path: /health, port: 8000}, periodSeconds: 2, timeoutSeconds: 5}
          lifecycle: {preStop: {sleep: {seconds: 5}}}
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
LOAD = f"""
title: A stream every five seconds, and every two in a burst
duration_s: {LOAD_S}
longest_stream_s: 40
arrivals:
  kind: step
  levels: [{{start_s: 0, rate_per_s: 0.2}}, {{start_s: 20, rate_per_s: 0.5}}, {{start_s: 120, rate_per_s: 0.4}}]
tokens: {{prompt: {{kind: fixed, tokens: 30}}, output: {{kind: fixed, tokens: 64}}}}
send:
  connect_timeout_s: 10
  first_token_timeout_s: 45
  stall_timeout_s: 25
  deadline_s: 120
  lag_ms_p99_max: 5000
"""


def experiment(places: RealVllm, target: str) -> dict[str, Any]:
    image = process_image(places)
    module = "harness.run.chaos"

    def step(kind: str, name: str, where: str, func: str, **arguments: object) -> dict[str, object]:
        provider: dict[str, object] = {"type": "python", "module": f"{module}.{where}", "func": func}
        return {"type": kind, "name": name, "provider": provider | ({"arguments": arguments} if arguments else {})}

    def one(capacity_type: str) -> dict[str, object]:
        return {"selector": f"karpenter.sh/capacity-type={capacity_type}", "count": 1}

    def pool(name: str, price: float) -> dict[str, object]:
        return {"name": name, "capacity_type": name, "gpus": 1, "nodes": 1, "stock": 2, "price_per_hour": price}

    steady = step("probe", "the workload is steady", "probes", "workload_steady", after_s=10, ready_min=2)
    return {
        "title": "Real vLLM on real kubelets: a node loses its power, the other is drained",
        "description": (
            "Two vLLM servers as pods that ask for a GPU. In a burst the node of one loses its power; while "
            "its successor is still to come, the other's node is drained. What was in flight on the lost node is lost; "
            "the drain has to wait for the budget and to lose nothing."
        ),
        "tags": ["real-vllm", "power-loss", "drain"],
        "controls": [{"name": "gpu-harness", "provider": {"type": "python", "module": f"{module}.control"}}],
        "steady-state-hypothesis": {"title": "both replicas are Ready", "probes": [steady | {"tolerance": True}]},
        "method": [
            step(
                "action", "the spot node loses its power", "actions", "node_silent",
                after_s=POWER_LOSS_S, nodes=one("spot"), hold_s=LOAD_S - POWER_LOSS_S - 10,
                how=LOST[target], until="not ready",
            ) | {"background": True},
            step(
                "action", "the other node is drained", "actions", "node_drain",
                after_s=DRAIN_S, nodes=one("on-demand"), hold_s=LOAD_S - DRAIN_S - 5,
            ),
        ],
        "rollbacks": [step("action", "heal", "actions", "heal")],
        "extensions": [
            {
                "name": "gpu-harness",
                "time_scale": 1,
                "workload": {"namespace": "inference", "selector": "app=llm", "service": "llm", "model": "tiny"},
                "load": "load.yaml",
                "manifests": ["llm.yaml"],
                "world": {
                    "pools": [pool("spot", 1.0), pool("on-demand", 3.0)],
                    "processes": [
                        {
                            "image": image.image,
                            "command": list(image.command),
                            "env": dict(image.env) | ONE_PROCESS,
                            "folders": list(image.folders),
                        }
                    ],
                },
                "phases": {"warm_up_s": 15, "recovery_s": 60},
                "checks": [{"graceful_drain": {"streams_lost_max": 0}}, {"pdb": {}}],
            }
        ],
    }  # fmt: skip


def run(places: RealVllm, target: str, seed: int, reports: Path) -> Ran:
    options = ("--target", target, "--plain", "--seed", str(seed))
    folder = reports / f"{target}-{seed}"
    return play(target, folder, experiment(places, target), MANIFEST, LOAD, *options, limit_s=RUN_S)
