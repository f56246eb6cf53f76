"""Manifests as a real kubelet can run them, though written for nodes that are not there.

On hollow nodes a pod may ask for the CPUs and the memory of a GPU server, its image's name alone decides what runs, and
its seconds are those of the scenario. A real kubelet takes it all at its word. So, in a copy:

- requests and limits of CPU and memory go: every node is the same machine, and it is none of the size;
- an image that stands for a model server stays what it is called, for nodes have one of that name, which is our fake;
  what hollow nodes read from annotations becomes its flags, and so do the planted bugs that are a model server's;
- an image that stands for a real program of this machine runs that one, in the pod's network and with the folders
  mounted that it needs;
- what a kubelet counts (grace, preStop, probes) is divided by the time scale, rounded up to whole seconds.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy

from fakes.config import PlantedBug, ProcessImage, WorldConfig
from fakes.nodes.process_container import command_line
from fakes.timing import PRESETS
from fakes.vllm.container import PROFILE_ANNOTATION
from harness.kube.port import Json

ClockS = Callable[[float], float]
MODEL_SERVER = "vllm"
"""Containers of images whose name contains this are model servers, as on hollow nodes."""
SERVE = ("python3", "-m", "fakes.vllm", "--port", "8000")
BUG_FLAGS: Mapping[PlantedBug, str] = {
    PlantedBug.SERVER_ABORTS_ON_SIGTERM: "--abort-on-sigterm",
    PlantedBug.SERVER_HANGS_ON_SIGTERM: "--hang-on-sigterm",
    PlantedBug.READY_BEFORE_SERVING: "--healthy-while-loading",
}
"""Planted bugs of the model server, as it takes them on its command line."""
SYSTEM_FOLDERS = ("/usr", "/bin", "/lib", "/lib64")
"""What any program of this machine may be linked with, or call."""
_PORT = 8000
_ANYWHERE = "0.0.0.0"
_POD_NAME = "POD_NAME"
_NOT_OF_THIS_MACHINE = ("cpu", "memory", "ephemeral-storage")
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
_PROBE_SECONDS = ("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "terminationGracePeriodSeconds")


def for_real_kubelets(obj: Json, config: WorldConfig) -> Json:
    def clock_s(scenario_s: float) -> float:
        return scenario_s / config.time_scale

    made = deepcopy(obj)
    for meta, spec in _pods_in(made):
        _scale(spec, ("terminationGracePeriodSeconds", "activeDeadlineSeconds"), clock_s)
        for container in _containers(spec):
            _drop_resources(container)
            image = str(container.get("image", ""))
            if (process := next((p for p in config.processes if p.image in image), None)) is not None:
                _run_process(spec, container, process)
            elif MODEL_SERVER in image:
                _serve(container, meta.get("annotations") or {}, config)
            for probe in _PROBES:
                _scale(container.get(probe) or {}, _PROBE_SECONDS, clock_s)
            for hook in (container.get("lifecycle") or {}).values():
                _scale(hook.get("sleep") or {}, ("seconds",), clock_s)
    return made


def images_of_ours(images: Iterable[str], config: WorldConfig) -> list[str]:
    """Those of ``images`` that nodes have to have, for we say what runs in them; by the names that they look for."""
    ours = (image for image in images if any(part in image for part in (MODEL_SERVER, *_images_of(config))))
    return [_as_looked_for(image) for image in ours]


def images_in(objects: Iterable[Json]) -> list[str]:
    """Of all containers, each once."""
    found = (c.get("image") for obj in objects for _, spec in _pods_in(obj) for c in _containers(spec))
    return list(dict.fromkeys(str(image) for image in found if image))


def _images_of(config: WorldConfig) -> Iterator[str]:
    yield from (process.image for process in config.processes)


def _as_looked_for(image: str) -> str:
    """By kubelet and containerd: with a registry and a tag, Docker's and ``latest`` where none is named."""
    name = image if ":" in image.rpartition("/")[2] or "@" in image else f"{image}:latest"
    first, _, rest = name.partition("/")
    if rest and ("." in first or ":" in first or first == "localhost"):
        return name
    return f"docker.io/{name if rest else f'library/{name}'}"


def _serve(container: Json, annotations: Json, config: WorldConfig) -> None:
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if words[:2] == ["vllm", "serve"]:
        words = words[2:]
    profile = [f"--latency-profile={annotations[PROFILE_ANNOTATION]}"] if PROFILE_ANNOTATION in annotations else []
    load = f"--model-load-s={PRESETS[config.preset].model_load.mean_s:g}"
    flags = [flag for bug, flag in BUG_FLAGS.items() if config.has(bug)]
    container["command"] = [*SERVE, f"--time-scale={config.time_scale:g}", load, *flags, *profile]
    container["args"] = [str(word) for word in words]
    container["imagePullPolicy"] = "Never"
    # Its process listens on all addresses of the pod, as vLLM does by default.
    if not any(str(word).startswith("--host") for word in words):
        container["command"].append(f"--host={_ANYWHERE}")


def _run_process(spec: Json, container: Json, process: ProcessImage) -> None:
    """The image is one of ours, of which only the empty folders matter: what the program needs is mounted over them,
    to be read. Shared memory is a volume, as for any vLLM in a cluster: a container's own has 64 MiB."""
    words = [str(word) for word in (*(container.get("command") or ()), *(container.get("args") or ()))]
    port = next((int(p["containerPort"]) for p in container.get("ports") or ()), _PORT)
    container["command"] = command_line(process.command, words, port=port, pod=f"$({_POD_NAME})", host=_ANYWHERE)
    container.pop("args", None)
    container["imagePullPolicy"] = "Never"
    given = {str(variable["name"]) for variable in container.get("env") or ()}
    # The image's own words about where its Python is would mislead another one.
    ours = {"PYTHONPATH": "", "LD_LIBRARY_PATH": "", "HOME": "/tmp", **dict(process.env)}
    container["env"] = [
        {"name": _POD_NAME, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        *({"name": name, "value": value} for name, value in ours.items() if name not in given),
        *(container.get("env") or ()),
    ]
    volumes, mounts = spec.setdefault("volumes", []), container.setdefault("volumeMounts", [])
    named = {str(volume["name"]) for volume in volumes}
    for folder in (*SYSTEM_FOLDERS, *process.folders):
        if (name := f"machine-{zlib.crc32(folder.encode()):08x}") not in named:
            volumes.append({"name": name, "hostPath": {"path": folder}})
        mounts.append({"name": name, "mountPath": folder, "readOnly": True})
    if "shared-memory" not in named:
        volumes.append({"name": "shared-memory", "emptyDir": {"medium": "Memory"}})
    mounts.append({"name": "shared-memory", "mountPath": "/dev/shm"})


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
    """A template stands in the spec of most kinds; a CronJob's and a LeaderWorkerSet's lie deeper, and those of a
    JobSet or of Ray's workers in lists."""
    for key, value in spec.items():
        inner = value.get("spec") if isinstance(value, dict) else None
        if (
            key in ("template", "workerTemplate", "leaderTemplate")
            and isinstance(inner, dict)
            and "containers" in inner
        ):
            yield value
        else:
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, dict):
                    yield from _templates(part)


def _containers(spec: Json) -> Iterator[Json]:
    for key in ("initContainers", "containers"):
        yield from spec.get(key) or ()


def _scale(where: Json, fields: Iterable[str], clock_s: ClockS) -> None:
    for field in fields:
        # What is no number the API server refuses, in better words than ours.
        if isinstance(where.get(field), int | float) and where[field]:
            where[field] = max(1, math.ceil(clock_s(where[field])))
