"""What is missed while a component is gone: asked for before it goes, meanwhile, and until all is well again.

Each kind of question is one class: a write that its webhook is asked about, a read of the API that it serves, an object
that it makes others of, a Node that it keeps alive. ``meanwhile`` says in a few words what was seen, and adds to
``wrong`` what should not have been.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from proving import NS, is_true, until_it_is

from harness.kube.http import HttpKube
from harness.kube.port import DEPLOYMENT, NODE, ApiError, Json, Resource

NODE_GRACE_S = 50.0
"""Of the node monitor of Kubernetes 1.37, and of the lease that it looks at: the nodes here live by the clock."""
MADE_WITHIN_S = 10.0
"""A controller that is there has made its objects long before; for so long a look shows that one is not."""
UNANSWERED = "failed calling webhook"
"""What the API server says where nobody answered; all else is a webhook's own word."""
FAKE = {"kwok.x-k8s.io/node": "fake"}


@dataclass(slots=True)
class Place:
    """Where it is asked. ``wrong`` collects what was otherwise than it should be."""

    kube: HttpKube
    kinds: Mapping[str, Resource]
    wrong: list[str] = field(default_factory=list)

    async def create(self, kind: str, body: Json) -> str:
        """With another name each time, which it returns: what is deleted takes a while to be gone."""
        name = f"{body['metadata']['name']}-{time.monotonic_ns()}"
        await self.kube.create(self.kinds[kind], body | {"metadata": body["metadata"] | {"name": name}})
        return name

    async def delete(self, kind: str, name: str) -> None:
        resource = self.kinds[kind]
        await self.kube.delete(resource, name, NS if resource.namespaced else None)


class Missed(ABC):
    what: str

    async def before(self, at: Place, how: str) -> None:  # noqa: B027 - most need nothing
        """What has to be there before the component goes."""

    @abstractmethod
    async def meanwhile(self, at: Place, how: str) -> str: ...

    @abstractmethod
    async def is_back(self, at: Place) -> bool: ...


@dataclass(slots=True)
class Write(Missed):
    """One object that somebody creates. ``refused``: by the component's webhook."""

    what: str
    kind: str
    body: Json
    refused: bool

    async def meanwhile(self, at: Place, how: str) -> str:
        began_s = time.monotonic()
        try:
            name = await at.create(self.kind, self.body)
        except ApiError as error:
            said = f"refused after {time.monotonic() - began_s:.1f} s ({error.status}, {_short(error.message)})"
            if not self.refused or UNANSWERED not in error.message:
                at.wrong.append(f"{how}: {self.what} was refused: {error}")
        else:
            said = f"taken in {time.monotonic() - began_s:.1f} s"
            if self.refused:
                at.wrong.append(f"{how}: {self.what} was taken")
            await at.delete(self.kind, name)
        return f"{self.what} {said}"

    async def is_back(self, at: Place) -> bool:
        if not self.refused:
            return True
        try:
            name = await at.create(self.kind, self.body)
        except ApiError as error:
            return UNANSWERED not in error.message
        await at.delete(self.kind, name)
        return True


@dataclass(slots=True)
class Read(Missed):
    """``path`` is of an API that the component serves and the API server passes on."""

    what: str
    path: str

    async def before(self, at: Place, how: str) -> None:
        await until_it_is(partial(self.is_back, at), f"{self.what} was not answered at first")

    async def meanwhile(self, at: Place, how: str) -> str:
        began_s = time.monotonic()
        try:
            await at.kube.raw(self.path)
        except (ApiError, ConnectionError) as error:
            status = error.status if isinstance(error, ApiError) else "no answer"
            return f"{self.what} failed after {time.monotonic() - began_s:.1f} s ({status}, {_short(str(error))})"
        at.wrong.append(f"{how}: {self.what} was answered")
        return f"{self.what} was answered"

    async def is_back(self, at: Place) -> bool:
        try:
            await at.kube.raw(self.path)
        except (ApiError, ConnectionError):
            return False
        return True


@dataclass(slots=True)
class Made(Missed):
    """One object that is taken, and of which the component makes others: of it objects of ``of`` have to come that name
    it as their owner. ``about``: a Deployment that it is about."""

    what: str
    kind: str
    body: Json
    of: Resource
    about: Json | None = None
    _names: list[str] = field(default_factory=list)

    async def before(self, at: Place, how: str) -> None:
        if self.about is not None and not self._names:
            await at.kube.create(DEPLOYMENT, self.about)

    async def meanwhile(self, at: Place, how: str) -> str:
        self._names.append(await at.create(self.kind, self.body))
        await asyncio.sleep(MADE_WITHIN_S)
        if await self.is_back(at):
            at.wrong.append(f"{how}: {self.of.plural} were made of {self.what}")
        return f"{self.what} was taken, and no {self.of.kind} made of it for {MADE_WITHIN_S:g} s"

    async def is_back(self, at: Place) -> bool:
        found = (await at.kube.list(self.of, NS)).items
        owners = [owner["name"] for obj in found for owner in obj["metadata"].get("ownerReferences") or ()]
        if (made := self._names[-1] in owners) and self.about is not None:  # the next one is about the same
            await at.delete(self.kind, self._names[-1])
        return made


@dataclass(slots=True)
class KeptAlive(Missed):
    """A Node that has no kubelet."""

    what: str = "its node"

    async def before(self, at: Place, how: str) -> None:
        await at.kube.create(NODE, {"metadata": {"name": _node(how), "annotations": FAKE}})
        await until_it_is(partial(self._ready, at, how), f"{_node(how)} did not become Ready")

    async def meanwhile(self, at: Place, how: str) -> str:
        began_s = time.monotonic()
        await until_it_is(partial(self._ready, at, how, False), f"{_node(how)} stayed Ready without KWOK")
        gone_s = time.monotonic() - began_s
        taints = sorted(t["key"] for t in (await at.kube.get(NODE, _node(how)))["spec"].get("taints") or ())
        if gone_s < NODE_GRACE_S / 2 or "node.kubernetes.io/unreachable" not in taints:
            at.wrong.append(f"{how}: {_node(how)} was given up after {gone_s:.1f} s with {taints}")
        return f"{self.what} was given up after {gone_s:.1f} s"

    async def is_back(self, at: Place) -> bool:
        found = (await at.kube.list(NODE)).items
        return all(is_true(node, "Ready") for node in found if FAKE.items() <= _annotations(node).items())

    async def _ready(self, at: Place, how: str, wanted: bool = True) -> bool:
        return is_true(await at.kube.get(NODE, _node(how)), "Ready") is wanted


def _node(how: str) -> str:
    return f"kwok-{how}"


def _annotations(obj: Json) -> Json:
    return obj["metadata"].get("annotations") or {}


def _short(message: str) -> str:
    message = " ".join(message.split())
    return message if len(message) < 120 else f"{message[:60]} … {message[-55:]}"
