"""A gateway whose replicas an endpoint picker chooses: the way of a request, and what a picker may do wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import grpc
import grpc.aio
from replicas import NS, Fleet, closed_port, gateway_for, make_fleet, raw_server
from test_ext_proc import M, chosen
from test_gateway_forward import say_hello

from fakes.gateway.choosing import endpoint_of
from fakes.gateway.ext_proc import PROCESS, Refused
from fakes.gateway.picker import EndpointPicker
from harness.kube.port import POD

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
CHAT = "/v1/chat/completions"


class Picking:
    """A picker that says what a test wants. ``asked`` is what it was asked."""

    def __init__(self) -> None:
        self.answer = b""
        self.asked: list[bytes] = []

    async def process(self, messages: AsyncIterator[bytes], context: object) -> AsyncIterator[bytes]:
        async for message in messages:
            self.asked.append(message)
            if message[0] >> 3 == 4:  # request_body
                yield self.answer


@asynccontextmanager
async def picking() -> AsyncIterator[tuple[Picking, EndpointPicker]]:
    says, server = Picking(), grpc.aio.server()
    service, _, method = PROCESS.strip("/").partition("/")
    handler = grpc.stream_stream_rpc_method_handler(says.process)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    picker = EndpointPicker(f"127.0.0.1:{port}")
    try:
        yield says, picker
    finally:
        await picker.close()
        await server.stop(None)


async def add_ready(fleet: Fleet, pod: str, address: tuple[str, int]) -> None:
    """Ready by its own status; what its endpoint says does not matter."""
    await fleet.add(pod, address, "n1", ready=False)
    await fleet.kube.patch(POD, pod, {"status": READY}, NS, subresource="status")


def at(*places: tuple[str, int]) -> bytes:
    return chosen(",".join(f"{host}:{port}" for host, port in places)).SerializeToString()


async def posted(url: str) -> tuple[int, str, str]:
    """Status, the pod that served it, and the text."""
    async with aiohttp.ClientSession() as client, client.post(url + CHAT, json={"model": "m"}) as response:
        return response.status, response.headers.get("x-serving-pod", ""), await response.text()


async def test_each_request_goes_where_the_picker_says() -> None:
    fleet = await make_fleet()
    async with picking() as (says, picker), raw_server(say_hello) as one, raw_server(say_hello) as two:
        await add_ready(fleet, "llm-a", one)
        await add_ready(fleet, "llm-b", two)
        async with gateway_for(fleet, picker=picker) as (_, url):
            says.answer = at(two)
            assert [await posted(url) for _ in range(3)] == [(200, "llm-b", "hello")] * 3
            says.answer = at(one)
            assert await posted(url) == (200, "llm-a", "hello")
    sent = M["ProcessingRequest"]()
    sent.ParseFromString(says.asked[-1])
    assert sent == M["ProcessingRequest"](request_body={"body": b'{"model": "m"}', "end_of_stream": True})


async def test_the_next_place_is_asked_when_the_best_refuses() -> None:
    fleet = await make_fleet()
    async with picking() as (says, picker), raw_server(say_hello) as one:
        gone = closed_port()
        await add_ready(fleet, "llm-a", one)
        await add_ready(fleet, "llm-gone", gone)
        async with gateway_for(fleet, picker=picker) as (_, url):
            says.answer = at(gone, one)
            assert await posted(url) == (200, "llm-a", "hello")


async def test_a_refusal_and_an_unknown_place_reach_the_client() -> None:
    fleet = await make_fleet()
    async with picking() as (says, picker), gateway_for(fleet, picker=picker) as (_, url):
        refusal = M["ProcessingResponse"](immediate_response={"status": {"code": 503}, "body": b"no candidate pods"})
        says.answer = refusal.SerializeToString()
        status, _, text = await posted(url)
        assert (status, "no candidate pods" in text) == (503, True)
        says.answer = at(("127.0.0.9", 1))
        status, _, text = await posted(url)
        assert (status, "127.0.0.9:1, where nobody" in text) == (503, True)


async def test_a_picker_that_is_gone_fails_closed() -> None:
    picker = EndpointPicker("{}:{}".format(*closed_port()))
    answer = await picker.ask(CHAT, b"{}")
    assert isinstance(answer, Refused) and answer.status == 500 and "UNAVAILABLE" in answer.body
    await picker.close()


def test_a_pod_can_be_chosen_while_it_is_ready_and_stays() -> None:
    meta = {"name": "a", "annotations": {"gpu-harness.dev/listen": "127.0.0.1:8000"}}
    pod = {"metadata": meta, "spec": {"nodeName": "n1"}, "status": READY}
    assert endpoint_of(pod)["conditions"] == {"ready": True, "terminating": False}
    assert endpoint_of(pod | {"status": {}})["conditions"]["ready"] is False
    assert endpoint_of(pod | {"metadata": {"name": "a"}})["conditions"]["ready"] is False
    assert endpoint_of(pod | {"metadata": meta | {"deletionTimestamp": "x"}})["conditions"]["terminating"] is True
