"""Pods are lost: evicted, deleted, or killed for their memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from harness.errors import TargetError
from harness.faults.fault import Strike, Variant
from harness.faults.fidelity import EVERYWHERE, ON_FAKES, FidelityMap
from harness.faults.holding import PodFault, PodHoldFault, flap, turn
from harness.faults.permissions import Need
from harness.faults.port import Ground
from harness.faults.sight import ends, is_ready, pods_of, restarts, waiting_reasons
from harness.faults.undo import NothingLeft
from harness.faults.undoing import world_of
from harness.kube.port import POD, NotFound, TooManyRequests
from harness.spec.model import Count

_ONE = {"selector": "app=llm", "count": 1}


class PodLoss(PodFault):
    """Blast radius: the picked pods. Evictions keep to disruption budgets, deletions do not; both leave a pod its
    grace."""

    name: ClassVar[str] = "pod_loss"
    colour: ClassVar[str] = "#ff7f0e"
    fidelity: ClassVar[FidelityMap] = EVERYWHERE
    undone_by: ClassVar[tuple[str, ...]] = (NothingLeft.kind,)
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("evict", "a drain, a descheduler, a VPA", {"pods": _ONE, "how": "evict"}),
        Variant("delete", "kubectl delete pod", {"pods": _ONE, "how": "delete"}),
    )

    how: Literal["evict", "delete"]

    def healed_s(self) -> float | None:
        return None

    def needs(self, namespace: str) -> tuple[Need, ...]:
        match self.how:
            case "evict":
                return (Need(POD, ("create",), "eviction", namespace),)
            case "delete":
                return (Need(POD, ("delete",), namespace=namespace),)

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        return {name: str(pod["metadata"]["uid"]) for name, pod in (await pods_of(ground)).items()}

    async def inject(self, strike: Strike) -> None:
        pods = await pods_of(strike.ground)
        for target in strike.targets:
            strike.will_undo(NothingLeft(f"{target} is its controller's to replace"))
            namespace, _, name = target.partition("/")
            if target not in pods:
                raise TargetError(f"pod {target} is not there any more")
            try:
                match self.how:
                    case "evict":
                        await strike.ground.kube.evict(name, namespace)
                    case "delete":
                        await strike.ground.kube.delete(POD, name, namespace, uid=pods[target]["metadata"]["uid"])
            except NotFound as error:
                raise TargetError(f"pod {target} is not there any more") from error
            except TooManyRequests as error:
                raise TargetError(f"a disruption budget holds {target}: {error.message}") from error

    async def signs(self, strike: Strike) -> dict[str, str]:
        now = await pods_of(strike.ground)
        found: dict[str, str] = {}
        for name, uid in strike.before.items():
            pod = now.get(name)
            if pod is None or pod["metadata"]["uid"] != uid:
                found[name] = f"{name}: the pod is gone"
            elif pod["metadata"].get("deletionTimestamp"):
                found[name] = f"{name}: the pod is terminating"
        return found

    def expected(self) -> tuple[str, str]:
        what = "the pod is terminating or gone"
        return what, "kubectl describe pod; does a disruption budget or a webhook refuse it?"


class PodOomKill(PodFault):
    """Blast radius: the first containers of the picked pods are killed for their memory, with all that they were doing;
    the kubelet starts them again in place, later each time."""

    name: ClassVar[str] = "pod_oom_kill"
    colour: ClassVar[str] = "#e5989b"
    fidelity: ClassVar[FidelityMap] = ON_FAKES
    undone_by: ClassVar[tuple[str, ...]] = (NothingLeft.kind,)
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("OOM kill", "a prompt too long for the host's memory", {"pods": _ONE}),
    )

    def healed_s(self) -> float | None:
        return None

    async def remember(self, ground: Ground, targets: Sequence[str]) -> Mapping[str, str]:
        pods = await pods_of(ground)
        return {name: f"{pod['metadata']['uid']} {restarts(pod)}" for name, pod in pods.items()}

    async def inject(self, strike: Strike) -> None:
        pods = await pods_of(strike.ground)
        for target in strike.targets:
            if target not in pods:
                raise TargetError(f"pod {target} is not there any more")
            strike.will_undo(NothingLeft(f"the container of {target} is its kubelet's to start again"))
            container = pods[target]["spec"]["containers"][0]["name"]
            await world_of(strike.ground).do("oom_kill", target, {"container": container})

    async def signs(self, strike: Strike) -> dict[str, str]:
        """Of a kubelet: the reason, the exit code of SIGKILL, and one more start of the container in the same pod."""
        found: dict[str, str] = {}
        for name, pod in (await pods_of(strike.ground)).items():
            uid, _, count = strike.before.get(name, "").partition(" ")
            again = uid == pod["metadata"]["uid"] and restarts(pod) > int(count)
            if again and ("OOMKilled", 137) in ends(pod):
                found[name] = f"{name}: OOMKilled with 137, started again in place ({restarts(pod)} restarts)"
        return found

    def expected(self) -> tuple[str, str]:
        return (
            "a container ends as OOMKilled with 137 and is started again in the same pod",
            "kubectl describe pod: Last State; is it in CrashLoopBackOff already?",
        )


class PodCrashLoop(PodHoldFault):
    """Blast radius: the picked pods' model servers end with an error, and so does each restart within ``hold_s``."""

    name: ClassVar[str] = "pod_crash_loop"
    colour: ClassVar[str] = "#ffbb78"
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("crash loop", "a bad setting, a GPU out of memory at load", {"pods": _ONE, "hold_s": 90}),
    )

    def seen_s(self) -> float:
        return 60.0

    async def inject(self, strike: Strike) -> None:
        for pod in strike.targets:
            await turn(strike, "pod.crash", pod, True)

    async def signs(self, strike: Strike) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, pod in (await pods_of(strike.ground)).items():
            if "CrashLoopBackOff" in waiting_reasons(pod) or (
                any(reason == "Error" for reason, _ in ends(pod)) and not is_ready(pod)
            ):
                found[name] = f"{name}: {restarts(pod)} restarts, {', '.join(sorted(waiting_reasons(pod))) or 'Error'}"
        return found

    def healed_s(self) -> float:
        return 360.0  # the back-off may just have begun

    def expected(self) -> tuple[str, str]:
        return "its container waits in CrashLoopBackOff, or ended with an error", "kubectl describe pod"


class ReadinessFlap(PodHoldFault):
    """Blast radius: the picked pods answer their readiness probe with 503, ``flaps`` times within ``hold_s``; they
    serve all the same, but get no new requests meanwhile."""

    name: ClassVar[str] = "readiness_flap"
    colour: ClassVar[str] = "#f7b6d2"
    variants: ClassVar[tuple[Variant, ...]] = (
        Variant("three times", "a probe with too short a timeout on a busy server", {"pods": _ONE, "hold_s": 150}),
    )

    flaps: Count = 3

    def seen_s(self) -> float:
        return 30.0

    async def inject(self, strike: Strike) -> None:
        for pod in strike.targets:
            await turn(strike, "pod.unready", pod, True)

    async def while_held(self, strike: Strike, until_s: float) -> None:
        await flap(strike, "pod.unready", True, self.flaps, self.hold_s, until_s)

    async def signs(self, strike: Strike) -> dict[str, str]:
        pods = await pods_of(strike.ground)
        return {
            name: f"{name}: runs, and is not Ready"
            for name, pod in pods.items()
            if (pod.get("status") or {}).get("phase") == "Running" and not is_ready(pod)
        }

    def expected(self) -> tuple[str, str]:
        return "the pod is not Ready", "kubectl get pod; has it a readiness probe?"
