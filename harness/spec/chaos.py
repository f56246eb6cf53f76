"""Chaos Toolkit's own part of an experiment, as strict models.

Chaos Toolkit takes a misspelt ``rollback:``, an unread ``tolerance`` or a ``timeout`` it will not keep without a word;
each such key is refused here, with the reason.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, Strict

from harness.spec.document import did_you_mean
from harness.spec.model import Flag, SpecModel, Text, mistake


def _dotted_module(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", text):
        raise mistake(f'"{text}" is not the dotted name of a Python module', hint="as in chaosk8s.pod.probes")
    return text


def _identifier(text: str) -> str:
    if not text.isidentifier():
        raise mistake(f'"{text}" is not the name of a Python function')
    return text


def _http_url(text: str) -> str:
    if not re.match(r"https?://|\$\{", text):
        raise mistake(f'"{text}" is not a URL', hint="start with http:// or https://")
    return text


def _program(text: str) -> str:
    if "${" not in text and shutil.which(text) is None:
        raise mistake(f'there is no program "{text}" here', hint="give its full path, or install it")
    return text


ModuleName = Annotated[str, AfterValidator(_dotted_module)]
FunctionName = Annotated[str, AfterValidator(_identifier)]


class PythonProvider(SpecModel):
    refused: ClassVar[Mapping[str, str]] = {
        "timeout": "Chaos Toolkit keeps it only for process and http; our actions have deadlines of their own",
    }

    type: Literal["python"]
    module: ModuleName
    func: FunctionName
    arguments: dict[str, Any] = Field(default_factory=dict)
    secrets: tuple[Text, ...] = ()


class ProcessProvider(SpecModel):
    type: Literal["process"]
    path: Annotated[str, AfterValidator(_program)]
    arguments: str | list[Any] | dict[str, Any] = Field(default_factory=list)
    timeout: Annotated[float, Strict(), Field(gt=0)] | None = None
    secrets: tuple[Text, ...] = ()


class HttpProvider(SpecModel):
    type: Literal["http"]
    url: Annotated[str, AfterValidator(_http_url)]
    method: str = "GET"
    headers: dict[str, Any] = Field(default_factory=dict)
    arguments: Any = None
    timeout: Annotated[float, Strict(), Field(gt=0)] | None = None
    verify_tls: Flag = True
    max_retries: int = Field(0, ge=0, strict=True)
    secrets: tuple[Text, ...] = ()


Provider = Annotated[PythonProvider | ProcessProvider | HttpProvider, Field(discriminator="type")]


class ControlProvider(SpecModel):
    type: Literal["python"]
    module: ModuleName
    arguments: dict[str, Any] = Field(default_factory=dict)
    secrets: tuple[Text, ...] = ()


class Control(SpecModel):
    name: Text
    provider: ControlProvider
    scope: Literal["before", "after"] | None = None
    automatic: Flag = True


class Pauses(SpecModel):
    """Clock seconds, or a variable; refused by ``experiment.py`` where the two clocks differ."""

    before: float | str | None = None
    after: float | str | None = None


class Activity(SpecModel):
    refused: ClassVar[Mapping[str, str]] = {
        "tolerance": "only probes of the steady-state-hypothesis are judged; elsewhere nothing looks at it",
        "timeout": "Chaos Toolkit does not keep it there; put it into the provider (process and http only)",
        "dry": "it would be reported as done without being done",
    }

    type: Literal["action", "probe"]
    name: Text
    provider: Provider
    background: Flag = False
    pauses: Pauses | None = None
    controls: tuple[Control, ...] = ()


class Reference(SpecModel):
    """An activity that repeats another one by its name."""

    ref: Text
    background: Flag = False
    pauses: Pauses | None = None


def _tolerance(value: object) -> object:
    """What chaoslib.hypothesis accepts, less what it would then compare in an unexpected way."""
    match value:
        case bool() | int() | str():
            return value
        case float():
            hint = f"write {{type: range, range: [{value:g}, {value:g}]}}, or a list of two bounds"
            raise mistake(f"a lone fraction ({value:g}) is refused by Chaos Toolkit", hint=hint)
        case list():
            return _list_tolerance(value)
        case dict():
            return _typed_tolerance(value)
        case _:
            raise mistake("must be true/false, a whole number, a text, a list, or a mapping with a type")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _list_tolerance(value: list[Any]) -> list[Any]:
    if not value:
        raise mistake("an empty list can never be met")
    if len(value) == 2:
        if not all(_is_number(bound) for bound in value):
            hint = "write {type: regex, pattern: '^(a|b)$'} for a choice"
            raise mistake(
                "two items are a range, whatever they are: of texts, anything between in the alphabet", hint=hint
            )
        if value[0] > value[1]:
            raise mistake(f"the range goes from {value[0]} down to {value[1]} and can never be met")
    return value


_TOLERANCE_KEYS = {
    "probe": ("type", "name", "provider", "pauses", "background"),
    "regex": ("type", "pattern", "target"),
    "jsonpath": ("type", "path", "count", "expect", "target"),
    "range": ("type", "range", "target"),
}
_NEEDED = {"probe": "provider", "regex": "pattern", "jsonpath": "path", "range": "range"}


def _typed_tolerance(value: dict[str, Any]) -> dict[str, Any]:
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _TOLERANCE_KEYS:
        raise mistake(
            f"{kind!r} is not a type of tolerance", key=("type",), hint=did_you_mean(str(kind), _TOLERANCE_KEYS)
        )
    for key in value:
        if key not in _TOLERANCE_KEYS[kind]:
            raise mistake(
                f"the key {key!r} is not known here", key=(key,), hint=did_you_mean(str(key), _TOLERANCE_KEYS[kind])
            )
    if _NEEDED[kind] not in value:
        raise mistake(f"the key {_NEEDED[kind]!r} is missing", key=(_NEEDED[kind],), hint="add it")
    if kind == "regex":
        _check_pattern(value["pattern"])
    if kind == "range":
        _check_range(value["range"])
    if kind == "jsonpath" and importlib.util.find_spec("jsonpath2") is None:
        raise mistake("a jsonpath tolerance needs a package that is not installed", hint="pip install jsonpath2")
    return value


def _check_pattern(pattern: object) -> None:
    if not isinstance(pattern, str):
        raise mistake("a pattern is a text", key=("pattern",), hint="put it in quotes")
    try:
        re.compile(pattern)
    except re.error as error:
        raise mistake(f"is not a regular expression: {error.msg}", key=("pattern",)) from None


def _check_range(bounds: object) -> None:
    if not isinstance(bounds, list) or len(bounds) != 2 or not all(_is_number(bound) for bound in bounds):
        raise mistake("a range is a list of two numbers", key=("range",), hint="as in range: [2, 8]")
    if bounds[0] > bounds[1]:
        raise mistake(f"the range goes from {bounds[0]} down to {bounds[1]} and can never be met", key=("range",))


class HypothesisProbe(Activity):
    refused: ClassVar[Mapping[str, str]] = {k: v for k, v in Activity.refused.items() if k != "tolerance"} | {
        "background": "a probe of the hypothesis is judged at once, so it cannot run aside",
    }

    type: Literal["probe"]
    tolerance: Annotated[Any, AfterValidator(_tolerance)]


class Hypothesis(SpecModel):
    title: Text
    probes: tuple[Any, ...] = Field(min_length=1)
    controls: tuple[Control, ...] = ()


class _RollbackStrategy(SpecModel):
    strategy: Literal["always"]


class _HypothesisStrategy(SpecModel):
    strategy: Literal["default", "before-method-only", "continuously"]


class Runtime(SpecModel):
    """Only what agrees with how the harness runs: rollbacks always, and a steady state that is looked at before."""

    rollbacks: _RollbackStrategy | None = None
    hypothesis: _HypothesisStrategy | None = None
    python: dict[str, Any] | None = None


class TopLevel(SpecModel):
    """The whole file. Lists of activities stay raw here: each entry is read by the model that fits it."""

    refused: ClassVar[Mapping[str, str]] = {
        "dry": "as a text it would inject for real; use `gpu-harness plan`, which touches nothing",
    }

    title: Text
    description: Text
    hypothesis: Hypothesis | None = Field(None, alias="steady-state-hypothesis")
    method: tuple[Any, ...]
    rollbacks: tuple[Any, ...] = ()
    controls: tuple[Control, ...] = ()
    configuration: dict[str, Any] = Field(default_factory=dict)
    secrets: dict[str, Any] = Field(default_factory=dict)
    extensions: tuple[Any, ...] = ()
    tags: tuple[Text, ...] = ()
    contributions: dict[str, Literal["high", "medium", "low", "none"]] = Field(default_factory=dict)
    runtime: Runtime | None = None
    version: Text | None = None
