"""Durations that a control plane itself counts, written in scenario seconds and handed to one that knows no time scale.

The embedded control plane divides by the time scale where it waits, and hollow kubelets divide what stands in a pod. A
real kube-controller-manager counts on the clock: what it reads has to be in clock seconds already.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy

from harness.kube.port import Json

ClockS = Callable[[float], float]


def on_the_servers_clock(obj: Json, clock_s: ClockS) -> Json:
    """A copy with the durations that kube-controller-manager counts divided, rounded up to whole seconds.

    Those are: an autoscaler's windows and periods, seconds of tolerations, a rollout's minReady and progress deadline,
    a finished Job's time to live and a Job's deadline. What the kubelet counts (grace, preStop, probes) stays as it is.
    """
    made = deepcopy(obj)
    spec: Json = made.get("spec") or {}
    match made.get("kind"):
        case "HorizontalPodAutoscaler":
            _autoscaler(spec, clock_s)
        case "Pod":
            _tolerations(spec, clock_s)
        case "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Job":
            _scale(
                spec,
                ("minReadySeconds", "progressDeadlineSeconds", "ttlSecondsAfterFinished", "activeDeadlineSeconds"),
                clock_s,
            )
            _tolerations((spec.get("template") or {}).get("spec") or {}, clock_s)
    return made


def _autoscaler(spec: Json, clock_s: ClockS) -> None:
    for rules in (spec.get("behavior") or {}).values():
        _scale(rules, ("stabilizationWindowSeconds",), clock_s)
        for policy in rules.get("policies") or ():
            _scale(policy, ("periodSeconds",), clock_s)


def _tolerations(spec: Json, clock_s: ClockS) -> None:
    for toleration in spec.get("tolerations") or ():
        _scale(toleration, ("tolerationSeconds",), clock_s)


def _scale(where: Json, fields: tuple[str, ...], clock_s: ClockS) -> None:
    for field in fields:
        if where.get(field):
            where[field] = max(1, math.ceil(clock_s(where[field])))
