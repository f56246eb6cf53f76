"""The control API: what it answers, and that bad bodies are named."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random

import pytest
from aiohttp.test_utils import TestClient, TestServer

from fakes.cloud.cloud import Cloud
from fakes.config import PoolConfig
from fakes.control.api import control_app
from fakes.control.control import Control
from fakes.control.wiring import wire_cloud
from fakes.timing import Timing

Client = TestClient


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    pools = (PoolConfig("spot", "spot", nodes=1), PoolConfig("on-demand", "on-demand", nodes=1))
    cloud = Cloud(pools, Timing(10), Random(1), boot=lambda i: None, lost=lambda i: None)
    cloud.start()
    control = Control(cloud)
    wire_cloud(control, cloud)
    async with TestClient(TestServer(control_app(control, {"time_scale": 10}))) as client:
        yield client


async def test_instances_are_listed(client: Client) -> None:
    answer = await client.get("/v1/instances")
    items = (await answer.json())["items"]
    assert [(i["id"], i["node"], i["pool"], i["state"], i["interrupt_at_s"]) for i in items] == [
        ("i-spot-1", "spot-1", "spot", "running", None),
        ("i-on-demand-1", "on-demand-1", "on-demand", "running", None),
    ]
    assert await (await client.get("/v1/world")).json() == {"time_scale": 10}


async def test_an_interruption_is_ordered_and_cancelled(client: Client) -> None:
    answer = await client.post("/v1/instances/i-spot-1/interruption", json={"notice_s": 120})
    body = await answer.json()
    assert (answer.status, body["state"]) == (201, "interrupting")
    assert 11 < body["interrupt_in_s"] <= 12
    again = await client.post("/v1/instances/i-spot-1/interruption", json={"notice_s": 120})
    assert again.status == 409
    for _ in range(2):
        cancelled = await client.delete("/v1/instances/i-spot-1/interruption")
        assert (cancelled.status, (await cancelled.json())["state"]) == (200, "running")


async def test_what_is_not_there_or_not_possible(client: Client) -> None:
    for method in ("POST", "DELETE"):
        answer = await client.request(method, "/v1/instances/i-x/interruption", json={"notice_s": 1})
        assert (answer.status, "i-spot-1" in (await answer.json())["error"]) == (404, True)
    on_demand = await client.post("/v1/instances/i-on-demand-1/interruption", json={"notice_s": 1})
    assert (on_demand.status, "only spot" in (await on_demand.json())["error"]) == (409, True)
    nowhere = await client.get("/v2/instances")
    assert (nowhere.status, "error" in await nowhere.json()) == (404, True)


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "{}", '{"notice_s": "120"}', '{"notice_s": true}', '{"notice_s": -1}', '{"notice_s": NaN}',
     '{"notice_s": 1, "nodes": 2}', '{"notice": 120}'],
)  # fmt: skip
async def test_bad_bodies_are_refused_with_what_would_be_right(client: Client, body: str) -> None:
    answer = await client.post("/v1/instances/i-spot-1/interruption", data=body)
    assert (answer.status, "notice_s" in (await answer.json())["error"]) == (400, True)
    items = (await (await client.get("/v1/instances")).json())["items"]
    assert items[0]["state"] == "running"


async def test_a_program_can_tell_a_target_that_is_gone_from_a_knob_that_never_was(client: Client) -> None:
    for knob, reason in (("cloud.stock", "unknown_target"), ("no.such", None)):
        answer = await client.put(f"/v1/knobs/{knob}/gone", json={"value": 1})
        assert (answer.status, (await answer.json()).get("reason")) == (404, reason)
