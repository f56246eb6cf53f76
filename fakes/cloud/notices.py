"""What an interruption queue does, for a Karpenter whose provider has none: the NodeClaim of an instance that gets its
notice is deleted.

That is all that the interruption controllers of Karpenter's cloud providers do about a notice (karpenter-provider-aws
v1.14, pkg/controllers/interruption); the kwok provider of sigs.k8s.io/karpenter v1.15.0 has no such controller. About a
rebalance recommendation they do nothing by default.
"""

from __future__ import annotations

from contextlib import suppress

from fakes.cloud.cloud import Cloud, Instance
from fakes.controllers.controller import Reconciler, run_controller
from fakes.controllers.informer import Informer
from fakes.controllers.objects import name_of
from harness.kube.port import NODE_CLAIM, Kube, NotFound


class InterruptionNotices:
    """A claim is known by its ``status.nodeName``: only our own rules give claim and Node the same name."""

    def __init__(self, kube: Kube, cloud: Cloud) -> None:
        self._kube = kube
        self._claims = Informer(kube, NODE_CLAIM)
        self._work: Reconciler[str] = Reconciler(self._interrupted)
        cloud.on_notice.append(self._noticed)

    async def run(self) -> None:
        await run_controller((self._claims,), self._work.run)

    def _noticed(self, instance: Instance) -> None:
        self._work.queue.add(instance.node)

    async def _interrupted(self, node: str) -> None:
        for claim in list(self._claims.objects.values()):
            if (claim.get("status") or {}).get("nodeName") == node:
                with suppress(NotFound):  # it was on its way out, and is gone
                    await self._kube.delete(NODE_CLAIM, name_of(claim))
