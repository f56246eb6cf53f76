"""What a gateway says to an endpoint picker, and what it hears: Envoy's external processing protocol, as far as it is
needed to ask where a request is to go.

Messages are those of envoy.service.ext_proc.v3 (Envoy 1.36), coded by hand: five fields are read and as many written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

PROCESS = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
DESTINATION = "x-gateway-destination-endpoint"
"""The header in which an endpoint picker names one place or more, the best first: HOST:PORT,HOST:PORT."""
_BYTES = 2
"""The wire type of texts, bytes and messages."""


@dataclass(frozen=True, slots=True)
class Picked:
    """``places`` are addresses, the best first."""

    places: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The picker answers the client itself, with this HTTP status."""

    status: int
    body: str


def request_headers(headers: Mapping[str, str]) -> bytes:
    """ProcessingRequest.request_headers; a body follows."""
    values = b"".join(_field(1, _field(1, k.encode()) + _field(3, v.encode())) for k, v in headers.items())
    return _field(2, _field(1, values))


def request_body(body: bytes) -> bytes:
    """ProcessingRequest.request_body, whole."""
    return _field(4, _field(1, body) + bytes((2 << 3, 1)))


def read_answer(message: bytes) -> Picked | Refused | None:
    """None for an answer that says nothing of where the request is to go."""
    for number, value in _fields(message):
        if number == 1 and isinstance(value, bytes):  # request_headers: HeadersResponse
            places = list(_places(value))
            return Picked(tuple(places)) if places else None
        if number == 7 and isinstance(value, bytes):  # immediate_response
            return _refused(value)
    return None


def _places(headers_response: bytes) -> Iterator[tuple[str, int]]:
    """response.header_mutation.set_headers.header"""
    for option in _within(headers_response, (1, 2, 1)):
        for header in _within(option, (1,)):
            said = {number: value for number, value in _fields(header) if isinstance(value, bytes)}
            if said.get(1, b"").decode().lower() != DESTINATION:
                continue
            for place in (said.get(3) or said.get(2, b"")).decode().split(","):
                host, _, port = place.strip().rpartition(":")
                if host and port.isdigit():
                    yield host.strip("[]"), int(port)


def _refused(immediate: bytes) -> Refused:
    status, body = 500, ""
    for number, value in _fields(immediate):
        if number == 1 and isinstance(value, bytes):
            status = next((code for field, code in _fields(value) if field == 1 and isinstance(code, int)), status)
        elif number == 3 and isinstance(value, bytes):
            body = value.decode(errors="replace")
    return Refused(status, body)


def _within(message: bytes, path: tuple[int, ...]) -> Iterable[bytes]:
    found = [message]
    for wanted in path:
        found = [v for m in found for number, v in _fields(m) if number == wanted and isinstance(v, bytes)]
    return found


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field. ValueError for what is no message."""
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = _read_varint(message, at)
            yield number, value
            continue
        if wire == _BYTES:
            length, at = _read_varint(message, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {at} of {len(message)}")
        if at + length > len(message):
            raise ValueError(f"field {number} is longer than its message")
        yield number, message[at : at + length]
        at += length


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
    raise ValueError("a number is cut off")
