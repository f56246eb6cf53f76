"""What is missed while a component is gone is found to be missed, and what is not, not."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from random import Random
from typing import cast

import pytest
from missed import UNANSWERED, KeptAlive, Made, Missed, Place, Read, Write
from proving import NS, pod, until_it_is

from fakes.clock import WallClock
from fakes.kube import LocalKube, Store
from harness.errors import TargetError
from harness.kube.http import HttpKube
from harness.kube.port import CONFIG_MAP, NODE, POD, ApiError, Json, Resource

pytestmark = pytest.mark.looptime
WRITE = Write("a pod", "Pod", pod("p", {"cpu": "1"}), refused=True)


class Answering(LocalKube):
    """``refusal``: what is said to a new pod; ``serves``: whether the API behind it answers."""

    def __init__(self) -> None:
        super().__init__(Store(WallClock(datetime(2026, 1, 1, tzinfo=UTC)), Random(1)), "test")
        self.refusal = ""
        self.serves = True

    async def create(self, resource: Resource, obj: Json, namespace: str | None = None) -> Json:
        if resource is POD and self.refusal:
            raise ApiError(500, "InternalError", self.refusal)
        return await super().create(resource, obj, namespace)

    async def raw(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        if not self.serves:
            raise ApiError(503, "ServiceUnavailable", "nobody is there")
        return {}


@pytest.fixture
async def kube() -> Answering:
    return Answering()


@pytest.fixture
def at(kube: Answering) -> Place:
    return Place(cast(HttpKube, kube), {"Pod": POD})


async def wrong_of(missed: Missed, at: Place) -> list[str]:
    await missed.meanwhile(at, "kill")
    return at.wrong


async def test_a_write_that_nobody_answers_for_is_missed(at: Place, kube: Answering) -> None:
    kube.refusal = f'{UNANSWERED} "x": connection refused'
    assert await wrong_of(WRITE, at) == [] and not await WRITE.is_back(at)
    kube.refusal = "a webhook's own word"
    assert await WRITE.is_back(at)


@pytest.mark.parametrize(
    ("refused", "refusal", "words"),
    [(True, "", "was taken"), (True, "quota", "was refused"), (False, UNANSWERED, "was refused")],
    ids=["taken", "refused by somebody else", "refused though nobody asks"],
)
async def test_a_write_that_goes_another_way_is_said(
    at: Place, kube: Answering, refused: bool, refusal: str, words: str
) -> None:
    kube.refusal = refusal
    (said,) = await wrong_of(Write("a pod", "Pod", pod("p", {"cpu": "1"}), refused), at)
    assert words in said and said.startswith("kill: ")


async def test_a_read_fails_while_its_server_is_gone(at: Place, kube: Answering) -> None:
    read = Read("a read", "/apis/x")
    await read.before(at, "kill")
    kube.serves = False
    assert await wrong_of(read, at) == [] and not await read.is_back(at)
    kube.serves = True
    assert await wrong_of(read, at) == ["kill: a read was answered"] and await read.is_back(at)


async def test_nothing_is_made_of_an_object_while_its_controller_is_gone(at: Place, kube: Answering) -> None:
    made = Made("a pod", "Pod", pod("p", {"cpu": "1"}), CONFIG_MAP)
    assert await wrong_of(made, at) == [] and not await made.is_back(at)
    (there,) = (await kube.list(POD, NS)).items
    owner = {"apiVersion": "v1", "kind": "Pod"} | {key: there["metadata"][key] for key in ("name", "uid")}
    await kube.create(CONFIG_MAP, {"metadata": {"name": "c", "namespace": NS, "ownerReferences": [owner]}})
    assert await made.is_back(at)


async def test_a_node_without_who_keeps_it_alive_that_stays_ready_is_an_error(at: Place, kube: Answering) -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    alive = KeptAlive()
    await kube.create(NODE, {"metadata": {"name": "kwok-kill"}, "status": ready})
    with pytest.raises(TargetError, match="stayed Ready without KWOK"):
        await alive.meanwhile(at, "kill")


async def test_patience_ends() -> None:
    async def never() -> bool:
        return False

    with pytest.raises(TargetError, match="within 150 s: not well"):
        await until_it_is(never, "not well")
