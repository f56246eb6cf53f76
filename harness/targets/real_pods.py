"""Manifests as a real kubelet can run them, though written for nodes that are not there.

On hollow nodes a pod may ask for the CPUs and the memory of a GPU server, its image's name alone decides what runs, and
its seconds are those of the scenario. A real kubelet takes it all at its word. So, in a copy:

- requests and limits of CPU and memory go: every node is the same machine, and it is none of the size;
- an image that stands for a model server stays what it is called, for nodes have one of that name, which is our fake;
  what hollow nodes read from annotations becomes its flags;
- what a kubelet counts (grace, preStop, probes) is divided by the time scale, rounded up to whole seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy

from fakes.vllm.container import PROFILE_ANNOTATION
from harness.kube.port import Json

ClockS = Callable[[float], float]
MODEL_SERVER = "vllm"
"""Containers of images whose name contains this are model servers, as on hollow nodes."""
SERVE = ("python3", "-m", "fakes.vllm", "--port", "8000")
_NOT_OF_THIS_MACHINE = ("cpu", "memory", "ephemeral-storage")
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
_PROBE_SECONDS = ("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "terminationGracePeriodSeconds")


def for_real_kubelets(obj: Json, clock_s: ClockS, time_scale: float) -> Json:
    """``clock_s`` turns scenario seconds into clock seconds."""
    made = deepcopy(obj)
    for meta, spec in _pods_in(made):
        _scale(spec, ("terminationGracePeriodSeconds", "activeDeadlineSeconds"), clock_s)
        for container in _containers(spec):
            _drop_resources(container)
            if MODEL_SERVER in str(container.get("image", "")):
                _serve(container, meta.get("annotations") or {}, time_scale)
            for probe in _PROBES:
                _scale(container.get(probe) or {}, _PROBE_SECONDS, clock_s)
            for hook in (container.get("lifecycle") or {}).values():
                _scale(hook.get("sleep") or {}, ("seconds",), clock_s)
    return made


def images_in(objects: Iterable[Json]) -> list[str]:
    """Of all containers, each once."""
    found = (c.get("image") for obj in objects for _, spec in _pods_in(obj) for c in _containers(spec))
    return list(dict.fromkeys(str(image) for image in found if image))


def _serve(container: Json, annotations: Json, time_scale: float) -> None:
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if words[:2] == ["vllm", "serve"]:
        words = words[2:]
    profile = [f"--latency-profile={annotations[PROFILE_ANNOTATION]}"] if PROFILE_ANNOTATION in annotations else []
    container["command"] = [*SERVE, f"--time-scale={time_scale:g}", *profile]
    container["args"] = [str(word) for word in words]
    container["imagePullPolicy"] = "Never"
    # Its process listens on all addresses of the pod, as vLLM does by default.
    if not any(str(word).startswith("--host") for word in words):
        container["command"].append("--host=0.0.0.0")


def _drop_resources(container: Json) -> None:
    for kind in ("requests", "limits"):
        amounts: Json = (container.get("resources") or {}).get(kind) or {}
        for name in _NOT_OF_THIS_MACHINE:
            amounts.pop(name, None)


def _pods_in(obj: Json) -> Iterator[tuple[Json, Json]]:
    """Metadata and spec of each pod that the object is, or makes."""
    if obj.get("kind") == "Pod":
        yield obj["metadata"], obj["spec"]
    for template in _templates(obj.get("spec") or {}):
        yield template.get("metadata") or {}, template.get("spec") or {}


def _templates(spec: Json) -> Iterator[Json]:
    """A template stands in the spec of most kinds; a CronJob's and a LeaderWorkerSet's lie deeper."""
    for key, value in spec.items():
        if key in ("template", "workerTemplate", "leaderTemplate") and "containers" in (value.get("spec") or {}):
            yield value
        elif isinstance(value, dict):
            yield from _templates(value)


def _containers(spec: Json) -> Iterator[Json]:
    for key in ("initContainers", "containers"):
        yield from spec.get(key) or ()


def _scale(where: Json, fields: Iterable[str], clock_s: ClockS) -> None:
    for field in fields:
        if where.get(field):
            where[field] = max(1, math.ceil(clock_s(where[field])))
