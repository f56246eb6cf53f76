"""Proofs of what makes several pods live and die as one."""

from __future__ import annotations

from proving import NS, is_true, runs, template, until

from harness.kube.port import POD, Json, Kube
from harness.stack.addons import Standing

GROUP = "leaderworkerset.sigs.k8s.io/group-index"


async def lws(kube: Kube, standing: Standing) -> str:
    """Two groups of two; a worker of one is lost."""
    kinds = {kind.kind: kind for kind in standing.kinds}
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template({"cpu": "1"})}}
    await kube.create(kinds["LeaderWorkerSet"], {"metadata": {"name": "g", "namespace": NS}, "spec": spec})

    async def groups() -> dict[str, list[Json]]:
        found: dict[str, list[Json]] = {}
        for each in (await kube.list(POD, NS)).items:
            if runs(each):
                found.setdefault(each["metadata"]["labels"].get(GROUP, ""), []).append(each)
        return found

    async def all_run() -> str:
        now = {index: len(pods) for index, pods in (await groups()).items()}
        return "" if now == {"0": 2, "1": 2} else f"running pods by group: {now}"

    await until(all_run)
    before = {index: {p["metadata"]["uid"] for p in pods} for index, pods in (await groups()).items()}
    await kube.delete(POD, "g-0-1", NS)

    async def made_anew() -> str:
        now = {index: {p["metadata"]["uid"] for p in pods} for index, pods in (await groups()).items()}
        if now.get("1") != before["1"]:
            return "the other group was touched"
        return "" if len(now.get("0", ())) == 2 and not now["0"] & before["0"] else "its group is not made anew"

    await until(made_anew)
    return "made two groups of two, and one of them anew when it lost a worker"


async def jobset(kube: Kube, standing: Standing) -> str:
    """Two pods that fail, once more as a whole, and no more."""
    kinds = {kind.kind: kind for kind in standing.kinds}
    pods = template({"cpu": "1"}, restartPolicy="Never")
    pods["spec"]["containers"][0] |= {"command": ["sh", "-c", "sleep 2; exit 1"]}
    job = {"parallelism": 2, "completions": 2, "backoffLimit": 0, "template": pods}
    replicated = [{"name": "w", "replicas": 1, "template": {"spec": job}}]
    spec = {"failurePolicy": {"maxRestarts": 1}, "replicatedJobs": replicated}
    await kube.create(kinds["JobSet"], {"metadata": {"name": "s", "namespace": NS}, "spec": spec})

    async def failed() -> str:
        found = await kube.get(kinds["JobSet"], "s", NS)
        restarts = (found.get("status") or {}).get("restarts", 0)
        return "" if is_true(found, "Failed") and restarts == 1 else f"{restarts} restarts, not failed"

    await until(failed)
    return "restarted its pods once as one when one failed, and gave up at its limit"


async def kuberay(kube: Kube, standing: Standing) -> str:
    kinds = {kind.kind: kind for kind in standing.kinds}
    group = {"template": template({"cpu": "1"}), "rayStartParams": {}}
    workers = [group | {"groupName": "w", "replicas": 2, "minReplicas": 2, "maxReplicas": 2}]
    spec = {"rayVersion": "2.52.0", "headGroupSpec": group, "workerGroupSpecs": workers}
    await kube.create(kinds["RayCluster"], {"metadata": {"name": "ray", "namespace": NS}, "spec": spec})

    async def ready() -> str:
        found = await kube.get(kinds["RayCluster"], "ray", NS)
        state = (found.get("status") or {}).get("state", "unknown")
        return "" if state == "ready" else f"its state is {state!r}"

    await until(ready)
    left = [p for p in (await kube.list(POD, NS)).items if p["metadata"]["labels"].get("ray.io/node-type") == "worker"]
    await kube.delete(POD, left[0]["metadata"]["name"], NS)

    async def replaced() -> str:
        workers = [p for p in (await kube.list(POD, NS)).items if p["metadata"]["labels"].get("ray.io/group") == "w"]
        new = [p for p in workers if runs(p) and p["metadata"]["uid"] != left[0]["metadata"]["uid"]]
        return "" if len(new) == 2 else f"{len(new)} workers"

    await until(replaced)
    return "made a head and two workers, and one anew that was lost"
