"""Changes are undone by their kind: knobs, and fields that nobody else has written since."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import cast

import pytest
from aiohttp.test_utils import TestServer
from faults_ground import add_namespace, make_ground, make_kube

from fakes.cloud.cloud import Cloud
from fakes.config import PoolConfig
from fakes.control.api import control_app
from fakes.control.control import Control
from fakes.control.knobs import whole
from fakes.kube.local import LocalKube
from fakes.timing import Timing
from harness.errors import GuardRefused, TargetError
from harness.faults.heal import heal_pending
from harness.faults.senses import Senses
from harness.faults.undo import (
    About,
    NothingLeft,
    ObjectRef,
    ResetKnob,
    RestoreFields,
    undo_from_json,
    undo_to_json,
)
from harness.faults.undoing import by_hand, undo_change
from harness.faults.world_control import HttpWorldControl, WorldControl
from harness.kube.port import CONFIG_MAP, ForwardingKube, Json, Resource
from harness.run.virtual.control import LocalWorldControl

REF = ObjectRef("v1", "ConfigMap", "a", "inference")
UNDO = RestoreFields(REF, {"data": {"x": "ours", "new": "ours"}}, {"data": {"x": "before", "new": None}})


@pytest.fixture
async def kube() -> LocalKube:
    kube = make_kube()
    await add_namespace(kube, "inference")
    meta = {"name": "a", "namespace": "inference"}
    data = {"x": "ours", "new": "ours", "theirs": "1"}
    await kube.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
    return kube


async def test_fields_get_their_earlier_values_back_as_often_as_asked(kube: LocalKube, tmp_path: Path) -> None:
    async with make_ground(tmp_path, kube) as ground:
        for _ in range(2):
            await undo_change(ground, UNDO)
    assert (await kube.get(CONFIG_MAP, "a", "inference"))["data"] == {"x": "before", "theirs": "1"}


async def test_a_field_that_somebody_else_has_written_is_left_alone_and_named(kube: LocalKube, tmp_path: Path) -> None:
    await kube.patch(CONFIG_MAP, "a", {"data": {"x": "theirs"}}, "inference")
    async with make_ground(tmp_path, kube) as ground:
        said = await undo_change(ground, UNDO)
    assert "left alone, for others wrote them since: data.x" in said
    assert (await kube.get(CONFIG_MAP, "a", "inference"))["data"] == {"x": "theirs", "theirs": "1"}


@pytest.mark.parametrize("theirs", [{}, {"labels": {"other": "1"}}])
async def test_fields_that_were_not_there_before_go_again(
    kube: LocalKube, tmp_path: Path, theirs: dict[str, dict[str, str]]
) -> None:
    """Whether ``earlier`` names them one by one, or only says that what holds them was not there."""
    await kube.patch(CONFIG_MAP, "a", {"metadata": theirs}, "inference")
    before = (await kube.get(CONFIG_MAP, "a", "inference"))["metadata"].get("labels")
    ours = {"metadata": {"labels": {"x": "ours", "y": "ours"}}}
    for earlier in ({"metadata": {"labels": before}}, {"metadata": {"labels": {"x": None}}}):
        await kube.patch(CONFIG_MAP, "a", ours, "inference")
        async with make_ground(tmp_path, kube) as ground:
            await undo_change(ground, RestoreFields(REF, ours, earlier))
        assert (await kube.get(CONFIG_MAP, "a", "inference"))["metadata"].get("labels") in (before, before or {})


@pytest.mark.parametrize(
    ("ours", "earlier", "never"),
    [
        ({"data": {"x": "mine"}}, {"data": {"x": "evil"}}, None),
        ({"data": {"theirs": "1"}}, {"data": {"theirs": "evil"}}, "data.theirs"),
        ({"data": {"x": "mine", "theirs": "1"}}, {"data": {"x": "b", "theirs": "evil"}}, "data.theirs"),
        ({"data": {"theirs": "1"}}, {"data": {"theirs": "1"}}, None),
        ({"metadata": {"labels": {"l": None}}}, {"metadata": {"labels": {"l": "back"}}}, None),
        ({"metadata": {"labels": None}}, {"metadata": {"labels": {"l": "back"}}}, None),
    ],
    ids=["ours", "theirs", "both", "as it was", "a label taken away", "all labels taken away"],
)
async def test_of_a_journal_that_another_may_have_written_only_fields_of_the_harness_are_restored(
    kube: LocalKube, tmp_path: Path, ours: Json, earlier: Json, never: str | None
) -> None:
    """Whoever may write a ConfigMap must not have the one who sweeps write into objects that he may not write."""
    await LocalKube(kube._store, "gpu-harness").patch(CONFIG_MAP, "a", {"data": {"x": "mine"}}, "inference")
    async with make_ground(tmp_path, kube) as ground:
        careful = replace(ground, only_of="gpu-harness")
        if never is None:
            await undo_change(careful, RestoreFields(REF, ours, earlier))
            return
        with pytest.raises(GuardRefused, match=f"never wrote it: {never}"):
            await undo_change(careful, RestoreFields(REF, ours, earlier))
    assert (await kube.get(CONFIG_MAP, "a", "inference"))["data"]["theirs"] == "1"


async def test_what_is_gone_needs_no_undo(kube: LocalKube, tmp_path: Path) -> None:
    await kube.delete(CONFIG_MAP, "a", "inference")
    async with make_ground(tmp_path, kube) as ground:
        assert "is not there any more" in await undo_change(ground, UNDO)


@pytest.mark.parametrize("earlier", [1, None])
@pytest.mark.parametrize("door", ["http", "virtual"])
async def test_a_knob_of_a_node_that_is_gone_needs_no_undo(
    kube: LocalKube, tmp_path: Path, door: str, earlier: int | None
) -> None:
    """Whatever it stood at before: two steps of one fault turn the same knob, then the spot machine is taken."""
    async with turned_for_a_node_that_went(door) as world, make_ground(tmp_path, kube) as ground:
        said = await undo_change(replace(ground, world=world), ResetKnob("device.unhealthy", "spot-1", earlier))
    assert "spot-1" in said


@pytest.mark.parametrize("door", ["http", "virtual"])
async def test_a_knob_that_never_was_is_no_undone_change(kube: LocalKube, tmp_path: Path, door: str) -> None:
    async with turned_for_a_node_that_went(door) as world, make_ground(tmp_path, kube) as ground:
        with pytest.raises(TargetError, match=r"there is no knob no\.such"):
            await undo_change(replace(ground, world=world), ResetKnob("no.such", "spot-1", 1))


@asynccontextmanager
async def turned_for_a_node_that_went(door: str) -> AsyncIterator[WorldControl]:
    cloud = Cloud((PoolConfig("spot", "spot"),), Timing(10), Random(1), boot=lambda i: None, lost=lambda i: None)
    control, nodes = Control(cloud), ["spot-1"]
    control.knobs.add("device.unhealthy", lambda: nodes, whole(1), lambda target, value: None)
    await control.knobs.turn("device.unhealthy", "spot-1", 2)
    nodes.clear()
    if door == "virtual":
        yield LocalWorldControl(control)
        return
    async with TestServer(control_app(control, {})) as server, HttpWorldControl(str(server.make_url("/"))) as world:
        yield world


@pytest.mark.parametrize("undo", [UNDO, ResetKnob("cloud.stock", "spot", 3), ResetKnob("net.link", "pods")])
def test_undos_survive_the_journal_and_can_be_done_by_hand(undo: RestoreFields | ResetKnob) -> None:
    assert undo_from_json(undo_to_json(undo)) == undo
    assert ("kubectl patch" if isinstance(undo, RestoreFields) else "curl -X PUT") in by_hand(undo)


@pytest.mark.looptime
async def test_a_change_that_arrives_after_its_undo_is_undone_again(kube: LocalKube, tmp_path: Path) -> None:
    """A killed process's last request was still on its way to a busy server when the healer was done with it."""
    await kube.patch(CONFIG_MAP, "a", {"data": {"x": "before", "new": None}}, "inference")
    async with make_ground(tmp_path, kube) as ground:
        ground.undo.before("apply-1", UNDO)
        healing = asyncio.create_task(heal_pending(ground, None, in_flight_s=0.2))
        await asyncio.sleep(0.1)
        assert ground.undo.replay().pending, "nobody calls it done while it may still arrive"
        await kube.patch(CONFIG_MAP, "a", {"data": {"x": "ours", "new": "ours"}}, "inference")
        report = await healing
    assert report.clean and not ground.undo.replay().pending
    assert (await kube.get(CONFIG_MAP, "a", "inference"))["data"] == {"x": "before", "theirs": "1"}


class OddKube(ForwardingKube):
    """A server that answers of one object what nobody foresaw."""

    async def enter(
        self, verb: str, resource: Resource, namespace: str | None, name: str = "", subresource: str = ""
    ) -> None:
        if name == "a":
            raise KeyError("metadata")


async def test_a_defect_in_one_undo_or_in_a_look_leaves_no_other_change_standing(
    kube: LocalKube, tmp_path: Path
) -> None:
    other = ObjectRef("v1", "ConfigMap", "b", "inference")
    meta = {"name": "b", "namespace": "inference"}
    await kube.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"x": "ours"}})
    async with make_ground(tmp_path, OddKube(kube)) as ground:
        ground.undo.before("one-1", RestoreFields(other, {"data": {"x": "ours"}}, {"data": {"x": "before"}}))
        ground.undo.before("two-1", UNDO)
        # Who looks whether it is gone from the pod needs senses, and this ground has none that work.
        about = About("link_trouble", {"after_s": 0, "link": "pods", "loss_ratio": 1, "hold_s": 9}, ("pods",))
        ground.undo.before("link_trouble-1", NothingLeft("nothing"), about)
        report = await heal_pending(replace(ground, senses=cast(Senses, object())), None)
    assert (await kube.get(CONFIG_MAP, "b", "inference"))["data"] == {"x": "before"}
    assert len(report.left) == 1 and report.left[0].startswith("two-1") and len(report.undone) == 2
    assert "KeyError" in report.errors[0] and "nobody could look" in report.errors[1]
