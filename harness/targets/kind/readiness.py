"""What a cluster that comes up still lacks, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping

from harness.faults.sight import gpus, is_ready
from harness.kube.port import NODE, POD, Kube
from harness.targets.controlplane.objects import SYSTEM_NAMESPACE
from harness.targets.kind.objects import FRONT


async def missing(kube: Kube, wanted: Mapping[str, int]) -> str:
    """Which nodes are not Ready, or lack GPUs."""
    there = {node["metadata"]["name"]: node for node in (await kube.list(NODE)).items}
    wrong = [f"{name} is not there" for name in wanted if name not in there]
    wrong += [f"{name} is not Ready" for name in wanted if name in there and not is_ready(there[name])]
    wrong += [
        f"{name} has {gpus(there[name]) or 0} of {count} GPUs"
        for name, count in wanted.items()
        if name in there and (gpus(there[name]) or 0) < count
    ]
    return "; ".join(wrong)


async def front_wrong(kube: Kube) -> str:
    pod = await kube.get(POD, FRONT, SYSTEM_NAMESPACE)
    if is_ready(pod):
        return ""
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    states = [state for c in containers for state in (c.get("state"), c.get("lastState")) if state]
    words = [str(how.get("message", "")).strip()[-600:] for state in states for how in state.values()]
    said = "\n".join(dict.fromkeys(filter(None, words)))  # of a container that ended badly: the end of its log
    return f"phase {(pod.get('status') or {}).get('phase')}, {json.dumps(states)[:300]}" + (f"\n{said}" if said else "")
