"""Reading single values as Go's decoder does: ranges of numbers, quantities, times, base64."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from fakes.kube.schema import quantity

_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")


class Trouble(Exception):
    """The quick reading met something that needs words; the thorough one finds them."""


class Mismatch(Exception):
    """The body does not fit the types: the message is that of Go's decoder."""


def read_text(value: Any) -> Any:
    if type(value) is not str:
        raise Trouble
    return value


def read_bool(value: Any) -> Any:
    if type(value) is not bool:
        raise Trouble
    return value


def read_integer(bits: int) -> Callable[[Any], Any]:
    highest = 2 ** (bits - 1)

    def read(value: Any) -> Any:
        if type(value) is not int or not -highest <= value < highest:
            raise Trouble
        return value

    return read


def read_float(value: Any) -> Any:
    if type(value) not in (int, float):
        raise Trouble
    return value


def read_int_or_text(value: Any) -> Any:
    if type(value) is str or (type(value) is int and -(2**31) <= value < 2**31):
        return value
    raise Trouble


def read_quantity(value: Any) -> Any:
    if type(value) is str:
        text = value.strip()
    elif type(value) in (int, float):
        text = repr(value)
    else:
        raise Mismatch(quantity.TEXT)
    try:
        return quantity.canonical(text)
    except ValueError as e:
        raise Mismatch(str(e)) from None


def read_bytes(value: Any) -> Any:
    if type(value) is not str:
        raise Trouble
    value = value.replace("\r", "").replace("\n", "")  # as Go's decoder reads what `base64` wrote over many lines
    try:
        return base64.b64encode(base64.b64decode(value, validate=True)).decode()
    except (binascii.Error, ValueError):
        place = next((i for i, c in enumerate(value) if not (c.isalnum() or c in "+/=")), len(value) - len(value) % 4)
        raise Mismatch(f"illegal base64 data at input byte {place}") from None


def read_time(micro: bool) -> Callable[[Any], Any]:
    layout = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"

    length = 27 if micro else 20

    def read(value: Any) -> Any:
        if type(value) is not str:
            raise Trouble
        if len(value) == length and value[10] == "T" and value[5] != "W" and value[-1] == "Z":
            try:
                datetime.fromisoformat(value)  # the form in which nearly all come, read without a pattern
            except ValueError:
                pass
            else:
                return value
        found = _RFC3339.fullmatch(value)
        if found is None or (micro and len(found[7] or "") != 7):
            raise Mismatch(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"')
        if found[8] == "Z" and (micro or not found[7]):
            try:
                year, month, day, hour, minute, second = (int(found[i]) for i in range(1, 7))
                datetime(year, month, day, hour, minute, second, tzinfo=UTC)
            except ValueError:
                raise Mismatch(f'parsing time "{value}": day out of range') from None
            return value
        try:
            moment = datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone(UTC)
        except (ValueError, OverflowError):
            raise Mismatch(f'parsing time "{value}": day out of range') from None
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if micro else "%Y-%m-%dT%H:%M:%SZ")

    return read
