"""Turns what pydantic says into one message for people: what was seen, where, what would be right."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.errors import BadInput, Where
from harness.spec.document import Document, KeyPath, did_you_mean
from harness.spec.model import MISTAKE

M = TypeVar("M", bound=BaseModel)

_UNITS_MS = {
    "ms": 1, "msec": 1, "millis": 1, "milliseconds": 1, "s": 1000, "sec": 1000, "secs": 1000, "second": 1000,
    "seconds": 1000, "m": 60_000, "min": 60_000, "mins": 60_000, "minute": 60_000, "minutes": 60_000,
    "h": 3_600_000, "hour": 3_600_000, "hours": 3_600_000,
}  # fmt: skip
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z%/]*)\s*")
_NUMBER_TYPES = {"float_type", "int_type", "int_from_float", "float_parsing", "int_parsing", "finite_number"}
_COMPARISONS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_SHAPES = {
    "model_type": "a mapping (key: value)",
    "model_attributes_type": "a mapping (key: value)",
    "dict_type": "a mapping (key: value)",
    "tuple_type": "a list",
    "list_type": "a list",
    "bool_type": "true or false",
}


def parse(model: type[M], data: object, document: Document, at: KeyPath) -> M:
    """A model from a part of a document; its mistakes, by line, as one BadInput."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = _mistakes(model, error, data, document, at)
    found.sort(key=lambda e: (e.where.line or 0) if e.where else 0)
    first, told = found[0], found[1:_TOLD_MAX]
    if len(found) > _TOLD_MAX:
        told.append(BadInput(f"{len(found) - _TOLD_MAX} more mistakes", where=Where(document.file)))
    first.also = tuple(told)
    raise first


def _mistakes(
    model: type[BaseModel], error: ValidationError | None, data: object, document: Document, at: KeyPath
) -> list[BadInput]:
    """An unknown key hides what else is wrong beside it, so the rest is looked at without it."""
    found: list[BadInput] = []
    left_out: set[KeyPath] = set()
    while error is not None:
        every = error.errors(include_url=False)
        # A list with a bad item is also "too short" for pydantic; only the innermost mistake is worth telling.
        inner = [d for d in every if not any(_above(d["loc"], other["loc"]) for other in every)]
        unknown = {path for details in inner if (path := _unknown(details, data)) is not None}
        beside = {path[:-1] for path in left_out}
        for details in inner:
            # What is missing beside an unknown key is most likely what was meant by it.
            if details["type"] == "missing" and _written(details["loc"], data, missing=True)[:-1] in beside:
                continue
            told = _explain(details, data, document, at)
            if str(told) not in map(str, found):
                found.append(told)
        if not unknown:
            break
        left_out |= unknown
        data = _without(data, unknown)
        try:
            model.model_validate(data)
        except ValidationError as following:
            error = following
        else:
            error = None
    return found


def _unknown(details: ErrorDetails, data: object) -> KeyPath | None:
    context = details.get("ctx", {})
    if not context.get("no_key"):
        return None
    return _written(details["loc"], data, missing=False) + tuple(context["key"])


def _without(data: Any, paths: set[KeyPath], here: KeyPath = ()) -> Any:
    match data:
        case dict():
            return {k: _without(v, paths, (*here, k)) for k, v in data.items() if (*here, k) not in paths}
        case list() | tuple():
            return [_without(v, paths, (*here, i)) for i, v in enumerate(data)]
        case _:
            return data


_TOLD_MAX = 20


def show(value: object) -> str:
    """A value as it may look in the file, short."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case str():
            text = value if len(value) <= 60 else value[:57] + "..."
            return f'"{text}"'
        case _:
            return str(value)


def _above(loc: tuple[int | str, ...], other: tuple[int | str, ...]) -> bool:
    return len(loc) < len(other) and other[: len(loc)] == loc


def _explain(details: ErrorDetails, data: object, document: Document, at: KeyPath) -> BadInput:
    kind = details["type"]
    context: dict[str, Any] = details.get("ctx", {})
    where = at + _written(details["loc"], data, missing=kind == "missing")
    if kind == MISTAKE:
        return document.mistake(where + tuple(context["key"]), context["text"], context["hint"])
    message, hint = _message(kind, context, details, str(where[-1]) if where else "")
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        where = (*where, context["discriminator"].strip("'"))
    return document.mistake(where, message, hint)


def _written(loc: tuple[int | str, ...], data: object, *, missing: bool) -> KeyPath:
    """``loc`` without the parts that pydantic adds for union members, which nobody wrote."""
    path: list[str | int] = []
    here: Any = data
    for index, part in enumerate(loc):
        last = index == len(loc) - 1
        inside = part in here if isinstance(here, dict) else isinstance(here, list | tuple) and isinstance(part, int)
        if inside:
            here = here[part]
        elif not (last and missing):
            continue
        path.append(part)
    return tuple(path)


def _message(kind: str, context: dict[str, Any], details: ErrorDetails, key: str) -> tuple[str, str | None]:
    seen = details["input"]
    if kind == "missing":
        return f"the key {key!r} is missing", "add it"
    if kind in _NUMBER_TYPES:
        return _number_message(seen, key, whole=kind.startswith("int"))
    if kind in _COMPARISONS:
        words, bound = _COMPARISONS[kind]
        hint = None
        if isinstance(seen, int | float) and 1 < seen <= 100 and context[bound] == 1 and _SHARE.search(key):
            hint = f"a share of all is written from 0 to 1: {key}: {seen / 100:g} for {seen:g} %"
        return f"is {show(seen)}, but must be {words} {context[bound]:g}", hint
    if kind == "literal_error":
        known = re.findall(r"'([^']*)'", context["expected"]) or [str(context["expected"])]
        return f"{show(seen)} is not one of the allowed values", did_you_mean(str(seen), known)
    if kind == "union_tag_invalid":
        known = re.findall(r"'([^']*)'", context["expected_tags"])
        return f"{show(context['tag'])} is not one of the allowed values", _meant(str(context["tag"]), known)
    if kind == "union_tag_not_found":
        return f"the key {context['discriminator']} is missing", "it says which kind this is"
    if kind in _SHAPES:
        return f"is {show(seen)}, but must be {_SHAPES[kind]}", None
    if kind in ("too_short", "too_long"):
        bound = "at least" if kind == "too_short" else "at most"
        number = context.get("min_length", context.get("max_length"))
        return f"has {context['actual_length']} items, but must have {bound} {number}", None
    if kind in ("string_type", "string_too_short", "string_pattern_mismatch"):
        hint = None if isinstance(seen, str) else "put it in quotes if it is meant as text"
        return f"is {show(seen)}, but must be a text{' that is not empty' if isinstance(seen, str) else ''}", hint
    return details["msg"][0].lower() + details["msg"][1:], None


def _meant(tag: str, known: list[str]) -> str:
    """Some names are known elsewhere for what has another one here."""
    for kind, how in _OTHER_NAMES.get(tag.lower(), {}).items():
        if kind in known:
            return f"write {how}; known: {', '.join(sorted(known))}"
    return did_you_mean(tag, known)


def _number_message(seen: object, key: str, *, whole: bool) -> tuple[str, str | None]:
    unit = next((u for suffix, u in _KEY_UNITS if re.search(suffix, key)), None)
    wanted = "a whole number" if whole else "a number"
    message = f"is {show(seen)}, but must be {wanted}{f' of {unit}' if unit else ''}"
    if not isinstance(seen, str) or not (quantity := _QUANTITY.fullmatch(seen)):
        return message, "YAML reads 1e3 as text; write 1000" if isinstance(seen, str) and "e" in seen.lower() else None
    number, word = float(quantity[1]), quantity[2].lower()
    if not word:
        return message, f"write it without quotes: {key}: {number:g}"
    if word in _UNITS_MS and unit:
        number = number * _UNITS_MS[word] / (1 if unit == "milliseconds" else 1000)
        return message, f"the unit stands in the key; write {key}: {number:g}"
    if word == "%":
        return message, f"write a ratio between 0 and 1: {key}: {number / 100:g}"
    return message, f"the unit stands in the key; write only the number: {key}: {number:g}"


_SHARE = re.compile(r"share|ratio")
_PULSES = "{kind: pulses, on_per_s: ..., off_per_s: ..., period_s: ..., on_s: ...}"
_OTHER_NAMES = {
    "uniform": {
        "histogram": "{kind: histogram, bins: [[first, last, 1]]} for any length between two with equal chances",
        "constant": "{kind: constant, rate_per_s: ...} for requests at equal distances",
    },
    "mmpp": {"on_off": "{kind: on_off, ...}, with on_mean_s and off_mean_s for the mean stays"},
    "periodic": {"pulses": _PULSES},
    "square": {"pulses": _PULSES},
    "square_wave": {"pulses": _PULSES},
    "exponential": {"poisson": "{kind: poisson, rate_per_s: ...} for exponential gaps"},
    "lognormal": {"log_normal": "{kind: log_normal, ...}"},
}
"""Another name, and for each kind that may be meant by it how that is written here."""
_KEY_UNITS = ((r"_ms(_|$)", "milliseconds"), (r"_per_s(_|$)", "requests per clock second"), (r"_s(_|$)", "seconds"))
