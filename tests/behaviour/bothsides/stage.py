"""What a scenario is written against: one cluster, one namespace, a clock that began with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from bothsides.given_metrics import GivenMetrics
from bothsides.hollow import Health, HollowNodes, NodeSpec

from harness.kube.port import (
    DEPLOYMENT,
    ENDPOINT_SLICE,
    EVENT,
    HPA,
    NODE,
    PDB,
    POD,
    POD_GROUP,
    REPLICA_SET,
    ApiError,
    Json,
    Kube,
    PatchType,
    Resource,
)
from harness.stack.catalogue import KUBECTL
from harness.stack.find import find_binaries

LOOKS = (POD, DEPLOYMENT, REPLICA_SET, HPA, PDB, ENDPOINT_SLICE, POD_GROUP, NODE, EVENT)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API said to a request of the scenario itself."""

    t_s: float
    label: str
    text: str


@dataclass(slots=True)
class Stage:
    kube: Kube
    namespace: str
    nodes: HollowNodes
    health: Health
    metrics: GivenMetrics
    began_s: float = 0.0
    answers: list[Answer] = field(default_factory=list)
    kubeconfig: str = ""
    """For scenarios that run kubectl; empty where there is no server to connect to."""

    def now_s(self) -> float:
        return asyncio.get_running_loop().time() - self.began_s

    async def at(self, t_s: float) -> None:
        """Waits until the scenario is ``t_s`` seconds old."""
        await asyncio.sleep(max(0.0, t_s - self.now_s()))

    async def create(self, resource: Resource, *objects: Json) -> None:
        for obj in objects:
            await self.kube.create(resource, obj, self.namespace if resource.namespaced else None)

    async def budget(self, *pdbs: Json) -> None:
        """Creates budgets that are to be there before the pods are, and waits until their controller has looked at
        each: which of two requests it hears of first is chance, and finding no pods is an event and a status."""
        await self.create(PDB, *pdbs)

        async def seen() -> bool:
            found = [await self.kube.get(PDB, pdb["metadata"]["name"], self.namespace) for pdb in pdbs]
            return all((pdb.get("status") or {}).get("observedGeneration") for pdb in found)

        await self.until(seen)

    async def patch(self, resource: Resource, name: str, patch: Json, subresource: str | None = None) -> None:
        namespace = self.namespace if resource.namespaced else None
        await self.kube.patch(resource, name, patch, namespace, subresource=subresource)

    async def set_image(self, name: str, image: str) -> None:
        containers = [{"name": "app", "image": image}]
        patch: Json = {"spec": {"template": {"spec": {"containers": containers}}}}
        await self.kube.patch(DEPLOYMENT, name, patch, self.namespace, type=PatchType.STRATEGIC)

    async def scale(self, name: str, replicas: int) -> None:
        await self.patch(DEPLOYMENT, name, {"spec": {"replicas": replicas}}, "scale")

    async def delete(self, resource: Resource, name: str, propagation: str | None = None) -> None:
        namespace = self.namespace if resource.namespaced else None
        await self.kube.delete(resource, name, namespace, propagation=propagation)

    async def pods(self, **labels: str) -> list[Json]:
        """Oldest first, then by name."""
        selector = ",".join(f"{k}={v}" for k, v in labels.items())
        found = (await self.kube.list(POD, self.namespace, label_selector=selector)).items
        return sorted(found, key=lambda p: (p["metadata"]["creationTimestamp"], p["metadata"]["name"]))

    async def ask(self, label: str, call: Awaitable[object]) -> bool:
        """Makes a request whose answer belongs to what is compared."""
        try:
            await call
        except ApiError as error:
            causes = [c.get("message", "") for c in (error.body.get("details") or {}).get("causes") or []]
            text = f"{error.status} {error.reason}: {error.message} {causes}"
            self.answers.append(Answer(self.now_s(), label, text))
            return False
        self.answers.append(Answer(self.now_s(), label, "ok"))
        return True

    async def evict(self, label: str, pod: Json, *, dry_run: bool = False) -> bool:
        name = pod["metadata"]["name"]
        return await self.ask(label, self.kube.evict(name, self.namespace, dry_run=dry_run))

    async def kubectl(self, label: str, *arguments: str) -> None:
        """Runs it to its end; its exit code and what it said, as a set of lines, belong to what is compared."""
        program = find_binaries((KUBECTL,)).path(KUBECTL)
        where = (f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}")
        process = await asyncio.create_subprocess_exec(
            program, *where, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        said, _ = await process.communicate()
        lines = sorted(set(said.decode().splitlines()))
        self.answers.append(Answer(self.now_s(), label, f"exit code {process.returncode}: {'; '.join(lines)}"))

    async def until(self, fact: Callable[[], Awaitable[bool]], deadline_s: float = 30.0) -> None:
        end_s = self.now_s() + deadline_s
        while not await fact():
            if self.now_s() > end_s:
                raise TimeoutError("the scenario waited in vain")
            await asyncio.sleep(0.1)


Script = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Explained:
    """A difference that stays: tracks that are not compared, as a pattern of "Kind alias, track", and why."""

    pattern: str
    reason: str

    def covers(self, alias: str, track: str) -> bool:
        return fnmatchcase(f"{alias}, {track}", self.pattern)


@dataclass(frozen=True, slots=True)
class Scenario:
    """``within_s`` and ``within_share`` bound how far a transition may lie apart on the two sides: seconds, and a share
    of the time since the scenario began."""

    name: str
    title: str
    script: Script
    nodes: tuple[NodeSpec, ...] = ()
    """Its own nodes; then it runs alone on the cluster. Without any it shares roomy ones with others."""
    looks: tuple[Resource, ...] = LOOKS
    explained: tuple[Explained, ...] = ()
    """Differences that are known and stay."""
    aside: tuple[str, ...] = ()
    """Patterns of what it does not look at, because others do: "Kind alias, track"."""
    within_s: float = 2.0
    within_share: float = 0.1
    settle_s: float = 1.1
    """A count that lasted for less was on its way to the next one."""
    placement: bool = False
    """Whether it matters on which node a pod is."""
    quick: bool = False
    kubectl: bool = False
    """It runs kubectl: the embedded side then is a server, in real time."""

    @property
    def alone(self) -> bool:
        return bool(self.nodes)
