"""What people write in their manifests in other ways than the planted ones: found all the same, or rightly not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.commands import run_command_line
from harness.errors import BadInput, ExitCode
from harness.inspection.accepting import Accepts
from harness.inspection.inspecting import Inspection, look
from harness.inspection.objects import Objects
from harness.inspection.reading import read_paths

SERVER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, namespace: inference}
spec:
  selector: {matchLabels: {app: llm}}
  template:
    metadata: {labels: {app: llm}, annotations: {gpu-harness.dev/longest-stream-s: "60"}}
    spec:
      terminationGracePeriodSeconds: 100
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.32.0
          args: [--shutdown-timeout, "85"]
          ports: [{containerPort: 8000}]
          resources: {limits: {nvidia.com/gpu: "1"}}
          readinessProbe: {httpGet: {path: /health, port: 8000}}
          lifecycle: {preStop: {sleep: {seconds: 5}}}
"""
ARGS = 'args: [--shutdown-timeout, "85"]'
PRESTOP = "{sleep: {seconds: 5}}"
BLOCKS, NOBODY = "pdb-blocks-every-drain", "pdb-selects-nothing"
AT_ONCE, GONE = "consolidation-at-once", "removed-api-version"
DUTY, AT_ZERO, REFUSED = "hpa-on-gpu-duty-cycle", "scale-from-zero-blind", "value-of-wrong-type"
RAY = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: ray, namespace: inference}
spec:
  headGroupSpec: {template: {spec: {containers: [{name: head, image: rayproject/ray:2.40}]}}}
  workerGroupSpecs:
    - groupName: gpus
      replicas: 2
      template: {spec: {containers: [{name: worker, image: rayproject/ray:2.40}]}}
"""
RAY_HOSTS = RAY.replace("replicas: 2", "replicas: 2\n      numOfHosts: 2")
LWS = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: big, namespace: inference}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 2
    workerTemplate: {spec: {containers: [{name: a, image: b}]}}
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: inference}
spec: {parallelism: 2, template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}
"""
GPU = 'resources: {limits: {nvidia.com/gpu: "1"}}'
RAY_WITH_GPUS = RAY_HOSTS.replace("{name: worker, image: rayproject/ray:2.40}", f"{{name: w, image: r, {GPU}}}")
RAY_JOB = """\
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: train, namespace: inference}
spec:
  entrypoint: python train.py
  rayClusterSpec:
    headGroupSpec: {template: {spec: {containers: [{name: head, image: r}]}}}
    workerGroupSpecs:
      - groupName: gpus
        replicas: 4
        template: {spec: {containers: [{name: w, image: r, GPU}]}}
""".replace("GPU", GPU)
JOB_SET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, namespace: inference}
spec:
  replicatedJobs:
    - name: a
      template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b, GPU}]}}}}
    - name: b
      template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b, GPU}]}}}}
""".replace("GPU", GPU)
RAY_GROUP = """\
---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: train-x, namespace: inference, ownerReferences: [{kind: RayJob, name: train, controller: true}]}
spec: {}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: p, namespace: inference, ownerReferences: [{kind: RayCluster, name: train-x, controller: true}]}
spec: {}
"""
INFERENCE_SERVICE = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: m, namespace: inference}
spec: {predictor: {model: {modelFormat: {name: vllm}, resources: {limits: {nvidia.com/gpu: "1"}}}}}
"""


def budget(says: str, labels: str = "{app: llm}", metadata: str = "{name: b, namespace: inference}") -> str:
    head = f"---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {metadata}\nspec:\n"
    return f"{head}  selector: {{matchLabels: {labels}}}\n  {says}\n"


def hpa(spec: str, metadata: str = "{name: h, namespace: inference}") -> str:
    head = f"---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {metadata}\nspec:\n"
    return f"{head}  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: llm}}\n  maxReplicas: 4\n  {spec}\n"


def on(name: str) -> str:
    return f"metrics: [{{type: External, external: {{metric: {{name: {name}}}, target: {{type: Value, value: '6'}}}}}}]"


def hpa_v1(annotations: dict[str, object], spec: str = "minReplicas: 1") -> str:
    told = json.dumps({f"autoscaling.alpha.kubernetes.io/{key}": value for key, value in annotations.items()})
    return hpa(spec, f"{{name: h, namespace: inference, annotations: {told}}}").replace(
        "autoscaling/v2", "autoscaling/v1"
    )


def on_v1(*names: str) -> dict[str, object]:
    told = [{"type": "External", "external": {"metricName": name, "targetValue": "6"}} for name in names]
    return {"metrics": json.dumps(told)}


def annotated(scaled: str, annotation: str) -> str:
    return scaled.replace("{name: k, namespace: inference}", f"{{name: k, namespace: inference, {annotation}}}")


def keda(trigger: str, more: str = "minReplicaCount: 1") -> str:
    head = "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: k, namespace: inference}\nspec:\n"
    return f"{head}  scaleTargetRef: {{name: llm}}\n  {more}\n  triggers: [{trigger}]\n"


def query(promql: str, ignore: str = "'false'") -> str:
    return (
        "{type: prometheus, metadata: {serverAddress: 'http://p:9090', threshold: '6', "
        f"query: '{promql}', ignoreNullValues: {ignore}}}}}"
    )


def pool(after: str, budgets: str = "") -> str:
    return (
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: p}\nspec:\n"
        f"  disruption: {{consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: {after}, "
        f"budgets: [{budgets}]}}\n"
        "  template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: d}, requirements: "
        "[{key: karpenter.k8s.aws/instance-family, operator: In, values: [p5]}]}}\n"
    )


def looked(tmp_path: Path, text: str) -> Inspection:
    file = tmp_path / "m.yaml"
    file.write_text(text)
    seen, notes = read_paths([file])
    return look(Objects(seen), Accepts(), "manifests", notes)


SIDECAR = SERVER.replace(
    "      containers:\n        - name: vllm\n",
    "      containers: [{name: gateway, image: envoy}]\n      initContainers:\n        - name: vllm\n"
    "          restartPolicy: Always\n",
)
TAKEN = "advanced: {horizontalPodAutoscalerConfig: {name: h}}"
TAKES = "scaledobject.keda.sh/transfer-hpa-ownership: 'true'"
ONE_BY_ONE = "gang-placed-one-by-one"
CASES = {
    "as it should be": (SERVER, []),
    # how a server ends
    "preStop: /bin/sleep": (SERVER.replace(PRESTOP, '{exec: {command: [/bin/sleep, "100"]}}'),
                            ["drain-beyond-grace", "grace-below-prestop"]),
    "preStop: Python": (SERVER.replace(PRESTOP, '{exec: {command: [python3, -c, "import time; time.sleep(100)"]}}'),
                        ["drain-beyond-grace", "grace-below-prestop"]),
    "preStop: no time": (SERVER.replace(PRESTOP, "{sleep: {seconds: 0}}"), ["no-prestop"]),
    "preStop of a sidecar": (
        SERVER + "        - {name: proxy, image: envoy, lifecycle: {preStop: {sleep: {seconds: 150}}}}\n",
        ["grace-below-prestop"],
    ),
    "vllm by a module": (SERVER.replace("image: vllm/vllm-openai:v0.32.0", "image: ours/llm:1").replace(
        ARGS, "command: [python3, -m, vllm.entrypoints.openai.api_server, --port, '8000']"),
        ["server-aborts-on-sigterm"]),
    "vllm in a script": (SERVER.replace("image: vllm/vllm-openai:v0.32.0", "image: ours/llm:1").replace(
        ARGS, 'command: [sh, -c, "exec vllm serve $MODEL"]'), ["server-aborts-on-sigterm"]),
    "a variable for the model": (SERVER.replace(ARGS, "args: [--model, $(MODEL)]"), ["server-aborts-on-sigterm"]),
    "a variable for arguments": (SERVER.replace(ARGS, 'args: [--model, a, "$(EXTRA_ARGS)"]'), []),
    "another vllm word": (SERVER.replace("image: vllm/vllm-openai:v0.32.0", "image: ours/llm:1").replace(
        ARGS, "args: [--served-model-name, vllm]"), []),
    "spot by affinity": (
        SERVER.replace("      containers:", "      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuring"
                       "Execution: {nodeSelectorTerms: [{matchExpressions: [{key: cloud.google.com/gke-provisioning, "
                       "operator: In, values: [spot]}]}]}}}\n      containers:"), ["grace-beyond-spot-notice"]),
    "a duration": (SERVER.replace('"60"', "1m30s"), []),
    "a longer duration": (SERVER.replace('"60"', "1m41s"), ["grace-below-longest-stream"]),
    "no duration": (SERVER.replace('"60"', "a minute"), ["seconds-without-meaning"]),
    "a duration without end": (SERVER.replace('"60"', "inf"), ["seconds-without-meaning"]),
    "preStop of a sidecar that starts first": (
        SERVER.replace("      containers:", "      initContainers: [{name: proxy, image: envoy, restartPolicy: Always, "
                       "lifecycle: {preStop: {sleep: {seconds: 150}}}}]\n      containers:"), ["grace-below-prestop"]),
    "an option as vllm takes it, too": (SERVER.replace("--shutdown-timeout", "--shutdown_timeout"), []),
    # budgets
    "one of a daemon set": (
        SERVER.replace("kind: Deployment", "kind: DaemonSet") + budget("minAvailable: 1"), []),
    "half of a cron job's": (
        JOB.replace("batch/v1\nkind: Job", "batch/v1\nkind: CronJob").replace(
            "spec: {parallelism: 2,", "spec: {schedule: '0 * * * *', jobTemplate: {spec: {parallelism: 2,").replace(
            "template: {spec: {rest", "template: {metadata: {labels: {app: t}}, spec: {rest").replace("]}}}", "]}}}}}")
        + budget("minAvailable: 1", "{app: t}"), []),
    "half of a scaled job's": (
        "apiVersion: keda.sh/v1alpha1\nkind: ScaledJob\nmetadata: {name: s, namespace: inference}\nspec:\n"
        "  triggers: []\n  jobTargetRef: {parallelism: 2, template: {metadata: {labels: {app: t}}, spec: "
        "{containers: [{name: a, image: b}]}}}\n" + budget("minAvailable: 1", "{app: t}"), []),
    "Ray, two hosts for each replica": (
        RAY_HOSTS + budget("minAvailable: 3", "{ray.io/group: gpus}"),
        []),
    "Ray, all hosts": (
        RAY_HOSTS + budget("minAvailable: 4", "{ray.io/group: gpus}"),
        [BLOCKS]),
    "a budget that says nothing": (SERVER + budget(""), [BLOCKS]),
    "a number in quotes": (SERVER + budget('maxUnavailable: "1"'), [REFUSED]),
    "more than all": (SERVER + hpa(f"minReplicas: 2\n  {on('q')}") + budget("maxUnavailable: 120%"), [REFUSED]),
    "from zero, all of one": (SERVER + keda(query("sum(gateway_waiting)"), "minReplicaCount: 0")
                              + budget("minAvailable: 1"), [BLOCKS]),
    "a job has no scale": (JOB + budget("maxUnavailable: 1", "{job-name: train}"), [BLOCKS]),
    "a job, in numbers": (JOB + budget("minAvailable: 1", "{batch.kubernetes.io/job-name: train}"), []),
    "Ray has no scale": (RAY + budget("maxUnavailable: 50%", "{ray.io/cluster: ray}"), [BLOCKS]),
    "Ray, in numbers": (RAY + budget("minAvailable: 1", "{ray.io/node-type: worker, ray.io/group: gpus}"), []),
    "Ray, another group": (RAY + budget("minAvailable: 1", "{ray.io/node-type: worker, ray.io/group: cpus}"), [NOBODY]),
    "a group's label": (LWS + budget("minAvailable: 3", "{leaderworkerset.sigs.k8s.io/name: big}"), []),
    "a group's label, all": (LWS + budget("minAvailable: 4", "{leaderworkerset.sigs.k8s.io/name: big}"), [BLOCKS]),
    "a pod's own label": (LWS + budget("minAvailable: 1", "{leaderworkerset.sigs.k8s.io/worker-index: '0'}"), []),
    "an operator's label": (
        SERVER + "---\n" + INFERENCE_SERVICE.replace(", resources: {limits: {nvidia.com/gpu: \"1\"}}", "")
        + budget("maxUnavailable: 1", "{serving.kserve.io/inferenceservice: m}"), []),
    "no such operator": (SERVER + budget("maxUnavailable: 1", "{serving.kserve.io/inferenceservice: m}"), [NOBODY]),
    # namespaces that a chart leaves out
    "a typo, unnamed": (SERVER + budget("maxUnavailable: 1", "{app: lmm}", "{name: b}"), [NOBODY]),
    "two scalers, one unnamed": (SERVER + hpa(on("q")) + hpa(on("q"), "{name: other}"),
                                 ["two-autoscalers-on-one-target"]),
    "two namespaces": (SERVER + hpa(on("q")) + hpa(on("q"), "{name: h, namespace: other}"), []),
    # figures
    **{f"duty cycle as {name}": (SERVER + hpa(on(name)), [DUTY]) for name in (
        "gpu-utilization", "gpuUtilization", "DCGM_FI_PROF_SM_ACTIVE", "habanalabs_utilization")},
    # an HPA of version 1
    "duty cycle in an annotation": (SERVER + hpa_v1(on_v1("vllm:waiting", "DCGM_FI_DEV_GPU_UTIL")), [DUTY]),
    "capitals in an annotation": (
        SERVER + hpa_v1({"metrics": '[{"Type": "Pods", "Pods": {"MetricName": "DCGM_FI_DEV_GPU_UTIL"}}]'}), [DUTY]),
    "memory in an annotation": (SERVER + hpa_v1(on_v1("DCGM_FI_DEV_FB_USED")), ["hpa-on-gpu-memory"]),
    "a queue in an annotation": (SERVER + hpa_v1(on_v1("vllm:waiting")), []),
    "an annotation of another version": (
        SERVER + hpa_v1(on_v1("DCGM_FI_DEV_GPU_UTIL")).replace("autoscaling/v1", "autoscaling/v2"), []),
    **{f"an annotation that says {said}": (SERVER + hpa_v1({"metrics": said}), [])
       for said in ("no JSON", "[", "7", "null", '["a"]', "[" * 100_000)},
    "zero by version 1": (SERVER + hpa_v1(on_v1("gateway_waiting"), "minReplicas: 0"), []),
    "zero by version 1, blind": (SERVER + hpa_v1({"metrics": '[{"type": "Pods", "pods": {"metricName": "q"}}]'},
                                                 "minReplicas: 0"), [AT_ZERO]),
    **{f"zero by {name} from outside": (SERVER + hpa("minReplicas: 0\n  " + on(name)), [AT_ZERO]) for name in (
        "vllm_num_requests_waiting", "vllm:num_requests_waiting", "DCGM_FI_DEV_XID_ERRORS")},
    "zero by a gateway": (SERVER + hpa("minReplicas: 0\n  " + on("gateway_requests_waiting")), []),
    "no window in an annotation": (
        SERVER + hpa_v1({"behavior": '{"ScaleDown": {"StabilizationWindowSeconds": 0}}'}), ["no-scale-down-window"]),
    "no scaling down in an annotation": (
        SERVER + hpa_v1({"behavior": '{"scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Disabled"}}'}),
        []),
    # KEDA's HPA, and KEDA's rest
    "KEDA takes the HPA over": (
        SERVER + hpa(on("q")) + annotated(keda(query("sum(q)"), TAKEN), f"annotations: {{{TAKES}}}"), []),
    "KEDA takes another HPA over": (
        SERVER + hpa(on("q")) + annotated(keda(query("sum(q)"), TAKEN.replace("name: h", "name: other")),
                                          f"annotations: {{{TAKES}}}"), ["two-autoscalers-on-one-target"]),
    "KEDA takes nothing over": (
        SERVER + hpa(on("q")) + annotated(keda(query("sum(q)"), TAKEN), f"annotations: {{{TAKES}}}").replace(
            "'true'", "'false'"), ["two-autoscalers-on-one-target"]),
    **{f"a ScaledObject with {said}": (
        SERVER + hpa(on("q")) + annotated(keda(query("sum(q)")), f"annotations: {{autoscaling.keda.sh/{said}}}"), rules)
       for said, rules in (
           ("paused: 'true'", []), ("paused: ''", []), ("paused-replicas: '2'", []),
           ("paused: 'false'", ["two-autoscalers-on-one-target"]),
           ("paused-scale-in: 'true'", ["two-autoscalers-on-one-target"]))},
    "no duty cycle": (SERVER + hpa(on("vllm:gpu_cache_usage_perc")), []),
    "of Google": (SERVER + keda("{type: gcp-stackdriver, metadata: {projectId: p, filter: "
                                "'metric.type=\"kubernetes.io/container/accelerator/duty_cycle\"'}}"), [DUTY]),
    "of an API": (SERVER + keda("{type: metrics-api, metadata: {url: 'http://x', valueLocation: gpu_util}}"), [DUTY]),
    "a label of that name": (SERVER + keda(query('sum(vllm:num_requests_waiting{gpu_util="x"})')), []),
    "to idle": (SERVER + keda(query("sum(vllm:num_requests_waiting)"), "minReplicaCount: 1\n  idleReplicaCount: 0"),
                [AT_ZERO]),
    "functions and groups": (
        SERVER + keda(query('sum by (model_name) (clamp_max(rate(vllm:request_success_total[1m]), 5))'),
                      "minReplicaCount: 0"), [AT_ZERO]),
    "of TGI": (SERVER + keda(query("sum(tgi_queue_size)"), "minReplicaCount: 0"), [AT_ZERO]),
    "one of a gateway": (SERVER + keda(query("sum(gateway_waiting) + sum(vllm:num_requests_waiting)"),
                                       "minReplicaCount: 0"), []),
    "False, as Go reads it": (SERVER + keda(query("sum(vllm:num_requests_waiting)", "'False'")), []),
    "a flag without quotes": (SERVER + keda(query("sum(vllm:num_requests_waiting)", "false")), [REFUSED]),
    "VPA beside an HPA on CPU": (
        SERVER + hpa("minReplicas: 1") + "---\napiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\n"
        "metadata: {name: v, namespace: inference}\nspec: {targetRef: {kind: Deployment, name: llm}, "
        "updatePolicy: {updateMode: Initial}}\n", ["two-autoscalers-on-one-target"]),
    "no scaling down at all": (
        SERVER + hpa(on("q") + "\n  behavior: {scaleDown: {stabilizationWindowSeconds: 0, selectPolicy: Disabled}}"),
        []),
    # GPUs
    "GPUs of a preparing container": (
        SERVER.replace("      containers:", "      initContainers: [{name: i, image: b, resources: {requests: "
                       "{nvidia.com/gpu: 1}}}]\n      containers:"), ["gpu-request-and-limit-differ"]),
    "a GPU of a sidecar": (
        SIDECAR.replace(f"          lifecycle: {{preStop: {PRESTOP}}}\n", ""), ["no-prestop"]),
    "a sidecar with all it needs": (SIDECAR, []),
    "a GPU of what only prepares": (SIDECAR.replace("          restartPolicy: Always\n", ""), []),
    # pods that need each other
    "Ray, one replica of two hosts": (RAY_WITH_GPUS, [ONE_BY_ONE]),
    "Ray, workers that come and go": (RAY_WITH_GPUS.replace("numOfHosts: 2", "numOfHosts: 1"), []),
    **{f"Ray with {label}": (RAY_WITH_GPUS.replace("{name: ray,", f"{{name: ray, labels: {{{label}: x}},"), [])
       for label in ("ray.io/gang-scheduling-enabled", "volcano.sh/queue-name", "kai.scheduler/queue",
                     "kueue.x-k8s.io/queue-name")},
    "a RayJob": (RAY_JOB, [ONE_BY_ONE]),
    "a RayJob with one pod": (RAY_JOB.replace("replicas: 4", "replicas: 1"), []),
    "a RayJob, by its least": (RAY_JOB.replace("replicas: 4", "minReplicas: 2"), [ONE_BY_ONE]),
    "a RayJob whose cluster has a group": (RAY_JOB + RAY_GROUP, []),
    "a RayJob beside another's group": (RAY_JOB + RAY_GROUP.replace("RayJob, name: train", "RayJob, name: b"),
                                        [ONE_BY_ONE]),
    "a JobSet": (JOB_SET, [ONE_BY_ONE]),
    "a JobSet with a scheduler": (JOB_SET.replace("{restartPolicy", "{schedulerName: volcano, restartPolicy"), []),
    "a JobSet in a queue": (JOB_SET.replace("{name: train,", "{name: train, labels: {kueue.x-k8s.io/queue-name: q},"),
                            []),
    "a JobSet, one after the other": (
        JOB_SET.replace("- name: b", "- name: b\n      dependsOn: [{name: a, status: Complete}]"), []),
    "a JobSet of many": (JOB_SET.split("    - name: b")[0].replace("- name: a", "- name: a\n      replicas: 2"),
                         [ONE_BY_ONE]),
    "one GPU in another way": (SERVER.replace('gpu: "1"', "gpu: 1000m"), []),
    "half a GPU": (SERVER.replace('gpu: "1"', "gpu: 0.5"), ["gpu-request-and-limit-differ"]),
    "Ray's own probes": (RAY.replace("ray:2.40}]}}}", "ray:2.40, ports: [{containerPort: 1}], resources: {limits: "
                         "{nvidia.com/gpu: 1}}}]}}}"), ["grace-by-default", "no-prestop"]),
    # nodes
    **{f"consolidation after {after}": (pool(after), [AT_ONCE]) for after in ("30s", "0h0m5s", "500ms", "0s")},
    **{f"consolidation after {after}": (pool(after), []) for after in ("60s", "1m", "1m30s", "Never")},
    **{f"a budget of {said}": (pool("0s", f"{{nodes: {said}}}"), []) for said in (
        '"0"', "0%", "'0', reasons: [Underutilized]", "'0', schedule: '0 9 * * *', duration: 8h")},
    "a budget of others": (pool("0s", "{nodes: '0', reasons: [Drifted]}"), [AT_ONCE]),
    "a budget of one": (pool("0s", "{nodes: '1'}"), [AT_ONCE]),
    # kinds
    **{f"{version} {kind}": (f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n", [GONE])
       for version, kind in (
           ("apps/v1beta2", "StatefulSet"), ("extensions/v1beta1", "DaemonSet"),
           ("networking.k8s.io/v1beta1", "Ingress"),
           ("rbac.authorization.k8s.io/v1beta1", "Role"), ("flowcontrol.apiserver.k8s.io/v1beta3", "FlowSchema"),
           ("karpenter.k8s.aws/v1beta1", "EC2NodeClass"), ("v1", "Deployment"), ("apps/v2", "Deployment"),
           ("apps/v1", "Deploymnet"), ("apps/v1", "HorizontalPodAutoscaler"), ("autoscaling/v2alpha1", "Scale"))},
    **{f"{version} {kind}": (f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n", [])
       for version, kind in (
           ("v1", "LimitRange"), ("networking.k8s.io/v1", "Ingress"), ("rbac.authorization.k8s.io/v1", "Role"),
           ("apps.kruise.io/v1beta1", "StatefulSet"), ("serving.knative.dev/v1", "Service"))},
    # fields and values
    "a grace in a Job": (JOB.replace("parallelism", "terminationGracePeriodSeconds: 60, parallelism"),
                         ["unknown-field"]),
    "a Secret over lines": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata:\n  k: |\n    aGVs\n    bG8=\n", []),
}  # fmt: skip


@pytest.mark.parametrize("text, rules", CASES.values(), ids=CASES)
def test_what_people_write_is_found_by_its_rule_or_by_none(tmp_path: Path, text: str, rules: list[str]) -> None:
    assert sorted(finding.rule.id for finding in looked(tmp_path, text).open) == rules


def test_a_secret_is_never_shown(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {k: hunter2!}\nstringData: {pin: 4711}\n"
    found = looked(tmp_path, text).open
    assert [finding.rule.id for finding in found] == [REFUSED, REFUSED]
    assert not any(word in f"{f.sighting.saw} {f.right}" for f in found for word in ("hunter2", "4711"))


def test_gpus_of_a_kind_that_nobody_knows_are_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(INFERENCE_SERVICE)
    assert run_command_line(["inspect", str(file)]) is ExitCode.UNKNOWN
    out = capsys.readouterr().out
    assert "InferenceService/inference/m asks for GPUs; where the pods of a InferenceService stand is not known" in out
    assert "not judged  no-prestop: where the pods of InferenceService stand is not known" in out


def test_the_configuration_of_a_tool_in_a_folder_is_no_object(tmp_path: Path) -> None:
    (tmp_path / "kind.yaml").write_text("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: [{role: worker}]\n")
    (tmp_path / "server.yaml").write_text(SERVER)
    seen, notes = read_paths([tmp_path])
    assert [s.kind for s in seen] == ["Deployment"]
    assert notes == (f"{tmp_path / 'kind.yaml'}: no Kubernetes object in it",)
    (tmp_path / "kind.yaml").write_text("kind: Service\napiVersion: v1\nmetadata: {labels: {a: b}}\n")
    with pytest.raises(BadInput, match="the object has no name"):
        read_paths([tmp_path])


@pytest.mark.parametrize("option", ["--longest-stream-s", "--model-load-s"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_no_time_is_no_longest_stream(tmp_path: Path, option: str, value: str) -> None:
    with pytest.raises(BadInput, match=r"is no time|greater than or equal to 0"):
        run_command_line(["inspect", str(tmp_path), option, value])
