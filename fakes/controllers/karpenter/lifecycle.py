"""A NodeClaim's way to a usable node: Launched, Registered, Initialized."""

from __future__ import annotations

from contextlib import suppress

from fakes.clock import WallClock, parse_stamp
from fakes.cloud.cloud import Cloud, CloudError, Instance, InstanceState, OutOfStock
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.events import EventRecorder
from fakes.controllers.informer import Informer
from fakes.controllers.karpenter import api
from fakes.controllers.karpenter.nodepools import rules
from fakes.controllers.objects import condition_status, is_terminating, merged, name_of
from fakes.controllers.quantity import parse_quantity
from fakes.nodes.labels import NODEPOOL, instance_of
from fakes.timing import Timing
from harness.kube.port import NODE, NODE_CLAIM, NODE_POOL, AlreadyExists, EventType, Json, Kube, NotFound

LAUNCH_TIMEOUT_S = 300
LAUNCH_RETRY_S = 5
REGISTRATION_TIMEOUT_S = 900
"""There is no such limit for Initialized: a node whose GPUs never appear stays, and costs."""


class NodeClaimLifecycle:
    """A claim, its node and its instance have one name. A claim whose instance is there already adopts it: so the
    nodes that exist at the start get theirs."""

    def __init__(self, kube: Kube, wall: WallClock, timing: Timing, cloud: Cloud) -> None:
        self._kube = kube
        self._wall = wall
        self._timing = timing
        self._cloud = cloud
        self._events = EventRecorder(kube, wall, "karpenter")
        self._claims = Informer(kube, NODE_CLAIM)
        self._nodes = Informer(kube, NODE)
        self._work: Reconciler[str] = Reconciler(self._reconcile)
        self._adopted: set[str] = set()
        self._claims.on_change(self._changed)
        self._nodes.on_change(self._changed)

    async def run(self) -> None:
        await run_controller((self._claims, self._nodes), self._work.run)

    def _changed(self, type: EventType, new: Json, old: Json | None) -> None:
        self._work.queue.add(name_of(new))

    async def _reconcile(self, name: str) -> None:
        claim, node = self._claims.objects.get(("", name)), self._nodes.objects.get(("", name))
        if claim is None:
            if node is not None:
                await self._adopt(node)
        elif not is_terminating(claim):
            await self._advance(claim, node)

    async def _adopt(self, node: Json) -> None:
        """Makes the claim of a node that was there before Karpenter. Once: a claim that somebody deleted stays so."""
        instance = self._cloud.instances.get(instance_of((node.get("spec") or {}).get("providerID", "")))
        if instance is None or instance.machine.provisioned or not instance.pool.provision:
            return
        if instance.node in self._adopted or instance.state is InstanceState.TERMINATED:
            return
        nodepool = await self._kube.get(NODE_POOL, instance.pool.node_pool)  # not there yet: tried again
        self._adopted.add(instance.node)
        requests = {"nvidia.com/gpu": str(instance.pool.gpus)} if instance.pool.gpus else {}
        claim = api.node_claim(instance.pool, instance.node, requests, nodepool, rules(nodepool))
        with suppress(AlreadyExists):
            await self._kube.create(NODE_CLAIM, claim)

    async def _advance(self, claim: Json, node: Json | None) -> None:
        """One step of the claim's status per pass; what it writes brings the next pass."""
        instance = await self._launched(claim)
        if instance is None:
            return
        news = [api.condition(api.LAUNCHED, "True")]
        facts: Json = {
            "providerID": instance.machine.provider_id,
            "imageID": "fake-image",
            "capacity": api.pool_capacity(instance.pool),
            "allocatable": api.pool_capacity(instance.pool),
        }
        if node is None:
            news.append(api.condition(api.REGISTERED, "Unknown", "NodeNotFound", "Node not registered with cluster"))
            # Whether a claim is initialized is asked only once it has registered.
            waits = "object is awaiting reconciliation"
            news.append(api.condition(api.INITIALIZED, "Unknown", "AwaitingReconciliation", waits))
            await self._give_up_late(claim)
        else:
            if not await self._register(claim, node):
                return
            facts["nodeName"] = name_of(node)
            news.append(api.condition(api.REGISTERED, "True"))
            initialized = initialization(claim, node)
            if initialized["status"] == "True" and not await self._label(node, api.INITIALIZED_LABEL):
                return
            if not api.is_initialized(claim):
                news.append(initialized)
        await self._write(claim, facts, news)

    async def _launched(self, claim: Json) -> Instance | None:
        """The claim's instance, ordered if need be; None when there is none and the claim had to go."""
        instance = api.instance_of_claim(self._cloud, claim)
        if instance is not None:
            return instance if instance.state is not InstanceState.TERMINATED else None
        pool = api.offering_of(claim)
        if pool not in self._cloud.pools:
            return None  # somebody else's claim
        if api.lacks_capacity(claim):
            await self._delete(claim)
            return None
        try:
            return self._cloud.launch(pool, name_of(claim))
        except OutOfStock as error:
            why = f"creating instance, insufficient capacity, {error}"
            await self._write(claim, {}, [api.condition(api.LAUNCHED, "False", api.INSUFFICIENT_CAPACITY, why)])
            said = f"NodeClaim {name_of(claim)} event: {why}"
            await self._events.warning(NODE_CLAIM, claim, api.INSUFFICIENT_CAPACITY, said)
            return None  # the echo of the condition deletes it
        except CloudError as error:
            await self._try_again(claim, str(error))
            return None

    async def _try_again(self, claim: Json, why: str) -> None:
        """A launch that failed for another reason than capacity: the cloud is asked again, for five minutes."""
        if self._age_s(claim) >= self._timing.clock_s(LAUNCH_TIMEOUT_S):
            await self._delete(claim)
            return
        self._work.queue.add_after(name_of(claim), self._timing.clock_s(LAUNCH_RETRY_S))
        await self._write(
            claim, {}, [api.condition(api.LAUNCHED, "Unknown", "LaunchFailed", f"creating instance, {why}")]
        )

    async def _register(self, claim: Json, node: Json) -> bool:
        """True when there is nothing left to write: finalizer and label on, taint of the start off."""
        meta, taints = node["metadata"], (node.get("spec") or {}).get("taints") or []
        kept = [t for t in taints if t["key"] != api.UNREGISTERED_TAINT]
        labels = meta.get("labels") or {}
        if is_terminating(node) or (
            api.has_finalizer(node) and len(kept) == len(taints) and labels.get(api.REGISTERED_LABEL) == "true"
        ):
            return True
        owner: Json = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": name_of(claim)}
        owner |= {"uid": claim["metadata"]["uid"], "blockOwnerDeletion": True}
        new_meta = {
            **meta,
            "labels": {
                **(claim["metadata"].get("labels") or {}),
                **labels,  # of the machine as it is, which may not be the one that was ordered
                NODEPOOL: api.pool_of(claim),
                api.REGISTERED_LABEL: "true",
            },
            "annotations": {**(meta.get("annotations") or {}), **(claim["metadata"].get("annotations") or {})},
            "finalizers": list(dict.fromkeys((*meta.get("finalizers", ()), api.TERMINATION_FINALIZER))),
            "ownerReferences": [owner],
        }
        await self._kube.update(
            NODE,
            merged(node, metadata=new_meta, spec={**(node.get("spec") or {}), "taints": _with_taints(kept, claim)}),
        )
        return False

    async def _label(self, node: Json, label: str) -> bool:
        """True when the label is on."""
        labels = node["metadata"].get("labels") or {}
        if labels.get(label) == "true":
            return True
        await self._kube.update(NODE, merged(node, metadata={**node["metadata"], "labels": {**labels, label: "true"}}))
        return False

    async def _write(self, claim: Json, facts: Json, news: list[Json]) -> None:
        status = {**api.with_conditions(claim, news, self._wall.stamp()), **facts}
        if status != (claim.get("status") or {}):
            await self._kube.update(NODE_CLAIM, merged(claim, status=status), subresource="status")

    async def _give_up_late(self, claim: Json) -> None:
        left_s = self._timing.clock_s(REGISTRATION_TIMEOUT_S) - self._age_s(claim)
        if left_s <= 0 and condition_status(claim, api.REGISTERED) != "True":
            await self._delete(claim)
        else:
            self._work.queue.add_after(name_of(claim), left_s)

    def _age_s(self, claim: Json) -> float:
        """Clock seconds."""
        return (self._wall.now() - parse_stamp(claim["metadata"]["creationTimestamp"])).total_seconds()

    async def _delete(self, claim: Json) -> None:
        try:
            await self._kube.delete(NODE_CLAIM, name_of(claim), uid=claim["metadata"]["uid"])
        except NotFound:
            return


def _with_taints(taints: list[Json], claim: Json) -> list[Json]:
    """With those that the claim wants its node to start with."""
    spec, there = claim.get("spec") or {}, {(t["key"], t["effect"]) for t in taints}
    wanted = (*(spec.get("taints") or ()), *(spec.get("startupTaints") or ()))
    return [*taints, *(t for t in wanted if (t["key"], t["effect"]) not in there)]


def initialization(claim: Json, node: Json) -> Json:
    """The Initialized condition; while it is Unknown, its reason names what is waited for. Pure."""

    def unknown(reason: str, message: str) -> Json:
        return api.condition(api.INITIALIZED, "Unknown", reason, message)

    if condition_status(node, "Ready") != "True":
        return unknown("NodeNotReady", "Node status is NotReady")
    taints = (node.get("spec") or {}).get("taints") or ()
    for startup in (claim.get("spec") or {}).get("startupTaints") or ():
        if any((t["key"], t["effect"]) == (startup["key"], startup["effect"]) for t in taints):
            return unknown("StartupTaintsExist", f'StartupTaint "{startup["key"]}:{startup["effect"]}" still exists')
    for taint in taints:
        if taint["key"] in api.EPHEMERAL_TAINTS:
            text = f"{taint['key']}:{taint['effect']}"
            return unknown("KnownEphemeralTaintsExist", f'KnownEphemeralTaint "{text}" still exists')
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    for resource in sorted(requests):
        if parse_quantity(requests[resource]) > 0 and parse_quantity(allocatable.get(resource, "0")) == 0:
            return unknown("ResourceNotRegistered", f'Resource "{resource}" was requested but not registered')
    return api.condition(api.INITIALIZED, "True")
