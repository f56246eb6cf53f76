"""The everyday commands of kubectl, in an order in which each finds something to do. ``NS`` is the namespace."""

from __future__ import annotations

from pathlib import Path

SERVED = (Path(__file__).parents[1] / "manifests" / "llm.yaml").read_text()
"""A Deployment with its budget and autoscaler."""
MANIFEST = (
    SERVED
    + """---
apiVersion: v1
kind: Service
metadata: {name: llm}
spec: {selector: {app: llm}, ports: [{port: 80, name: http, targetPort: 8000}]}
---
apiVersion: v1
kind: Pod
metadata: {name: solo, labels: {app: solo}}
spec: {nodeName: NS-n1, containers: [{name: c, image: "x:1"}]}
"""
)
MORE = MANIFEST.replace("replicas: 2", "replicas: 3", 1)
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"

COMMANDS: tuple[str | tuple[str, str], ...] = (
    ("apply -f -", MANIFEST), ("apply -f -", MANIFEST), ("apply --server-side -f -", MORE), ("apply --server-side --force-conflicts -f -", MORE),
    "get all", "get all -o wide", "get deploy,pdb,hpa,svc -o wide", "get deploy llm -o yaml", "get pod solo -o json", "get deploy llm -o name",
    "get deploy llm -o jsonpath={.spec.replicas}", "get deploy -o custom-columns=N:.metadata.name,R:.spec.replicas", "describe deploy llm", "describe hpa llm",
    "describe pdb llm", "describe svc llm", "describe pod solo", "scale deploy llm --replicas=5", "scale deploy llm --replicas=4 --current-replicas=9",
    "label deploy llm tier=gold", "label deploy llm tier=silver", "label deploy llm tier=silver --overwrite", "annotate deploy llm a=b", "annotate deploy llm a-",
    "set image deploy/llm vllm=x:2", "rollout restart deploy llm", "rollout status deploy llm --timeout=1s", "rollout history deploy llm",
    "rollout undo deploy llm", "rollout pause deploy llm", "rollout resume deploy llm", "autoscale deploy llm --min=1 --max=3 --name=x",
    'patch deploy llm -p {"spec":{"replicas":1}}', 'patch deploy llm --type=json -p [{"op":"replace","path":"/spec/replicas","value":2}]',
    'patch deploy llm --subresource=status --type=merge -p {"status":{"replicas":2}}', "create configmap cm --from-literal=a=b",
    "create secret generic s --from-literal=a=b", "create sa robot", "create deployment made --image=x:1", "run ran --image=x:1 --restart=Never",
    "expose deploy llm --port=81 --name=more", ("create -f -", MAP % "cm"), ("create -f -", MAP % "Bad_"), ("create -f -", MAP % "typo" + "datta: {a: b}\n"),
    ("create --validate=warn -f -", MAP % "typo" + "datta: {a: b}\n"), ("replace -f -", MAP % "cm" + "data: {a: c}\n"), "get cm cm -o yaml --show-managed-fields",
    "cordon NS-n1", "cordon NS-n1", "uncordon NS-n1", "taint node NS-n1 a=b:NoSchedule", "taint node NS-n1 a=c:NoSchedule", "taint node NS-n1 a-",
    "drain NS-n1 --force --ignore-daemonsets --timeout=4s --grace-period=0", "get node NS-n1", "describe node NS-n1",
    "wait deploy/llm --for=condition=Available --timeout=1s", "wait cm/cm --for=jsonpath={.data.a}=c --timeout=5s", "logs none", "logs ran", "logs ran -c none",
    "auth can-i get pods", "get events", "events", "get nothing", "get pod none", "get pods -l app=llm", "get pods --field-selector=status.phase=Running",
    "get pods -A --field-selector=metadata.namespace=NS", "delete pod ran --now", "delete cm cm typo", "delete cm none", "delete cm none --ignore-not-found",
    "delete deploy made --cascade=orphan --wait=false", "delete deploy,svc --all",
)  # fmt: skip
