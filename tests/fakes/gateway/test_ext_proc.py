"""The messages of an endpoint picker, against protobuf itself as an encoder that is not ours, on the same fields."""

from __future__ import annotations

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from fakes.gateway.ext_proc import DESTINATION, Picked, Refused, read_answer, request_body, request_headers

TEXT, BYTES, BOOL, ENUM_AS_INT, MESSAGE = 9, 12, 8, 5, 11
# Of envoy.service.ext_proc.v3 and envoy.config.core.v3 (Envoy 1.36): number, name, type, and the message it holds.
SHAPES = {
    "HeaderValue": [(1, "key", TEXT, ""), (2, "value", TEXT, ""), (3, "raw_value", BYTES, "")],
    "HeaderMap": [(1, "headers", MESSAGE, "HeaderValue*")],
    "HttpHeaders": [(1, "headers", MESSAGE, "HeaderMap"), (3, "end_of_stream", BOOL, "")],
    "HttpBody": [(1, "body", BYTES, ""), (2, "end_of_stream", BOOL, "")],
    "ProcessingRequest": [(2, "request_headers", MESSAGE, "HttpHeaders"), (4, "request_body", MESSAGE, "HttpBody")],
    "HeaderValueOption": [(1, "header", MESSAGE, "HeaderValue")],
    "HeaderMutation": [(1, "set_headers", MESSAGE, "HeaderValueOption*")],
    "CommonResponse": [(2, "header_mutation", MESSAGE, "HeaderMutation"), (5, "clear_route_cache", BOOL, "")],
    "HeadersResponse": [(1, "response", MESSAGE, "CommonResponse")],
    "BodyResponse": [(1, "response", MESSAGE, "CommonResponse")],
    "HttpStatus": [(1, "code", ENUM_AS_INT, "")],
    "ImmediateResponse": [(1, "status", MESSAGE, "HttpStatus"), (3, "body", BYTES, "")],
    "ProcessingResponse": [
        (1, "request_headers", MESSAGE, "HeadersResponse"),
        (3, "request_body", MESSAGE, "BodyResponse"),
        (7, "immediate_response", MESSAGE, "ImmediateResponse"),
    ],
}


def messages() -> dict[str, type[Message]]:
    file = descriptor_pb2.FileDescriptorProto(name="shapes.proto", package="shapes", syntax="proto3")
    for name, fields in SHAPES.items():
        message = file.message_type.add(name=name)
        for number, field, kind, of in fields:
            label = 3 if of.endswith("*") else 1
            added = message.field.add(name=field, number=number, type=kind, label=label)  # type: ignore[arg-type]  # plain numbers of the enums
            if of:
                added.type_name = f".shapes.{of.rstrip('*')}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {n: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"shapes.{n}")) for n in SHAPES}


M = messages()


def chosen(places: str, *, raw: bool = True) -> Message:
    value = {"raw_value": places.encode()} if raw else {"value": places}
    headers = [{"header": {"key": "x-other", "raw_value": b"1"}}, {"header": {"key": DESTINATION} | value}]
    common = {"header_mutation": {"set_headers": headers}, "clear_route_cache": True}
    return M["ProcessingResponse"](request_headers={"response": common})


def test_a_request_is_what_envoy_would_send() -> None:
    sent = M["ProcessingRequest"]()
    sent.ParseFromString(request_headers({":method": "POST", "content-type": "application/json"}))
    expected = [{"key": ":method", "raw_value": b"POST"}, {"key": "content-type", "raw_value": b"application/json"}]
    assert sent == M["ProcessingRequest"](request_headers={"headers": {"headers": expected}})
    body = b"{}" * 200
    sent.ParseFromString(request_body(body))
    assert sent == M["ProcessingRequest"](request_body={"body": body, "end_of_stream": True})


@pytest.mark.parametrize("raw", [True, False])
def test_the_places_are_read_best_first(raw: bool) -> None:
    answer = chosen("127.16.0.3:8000,127.16.1.4:8001,[::1]:9", raw=raw).SerializeToString()
    assert read_answer(answer) == Picked((("127.16.0.3", 8000), ("127.16.1.4", 8001), ("::1", 9)))


def test_a_refusal_has_its_status_and_words() -> None:
    refusal = M["ProcessingResponse"](immediate_response={"status": {"code": 503}, "body": b"no pods"})
    assert read_answer(refusal.SerializeToString()) == Refused(503, "no pods")


def test_what_names_no_place_is_no_answer() -> None:
    body = M["ProcessingResponse"](request_body={"response": {"clear_route_cache": True}})
    assert read_answer(body.SerializeToString()) is None
    assert read_answer(chosen("nowhere").SerializeToString()) is None


@pytest.mark.parametrize("broken", [b"\x0a\x05ab", b"\x0b", b"\xff"])
def test_what_is_no_message_is_told(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"longer|wire type|cut off"):
        read_answer(broken)
