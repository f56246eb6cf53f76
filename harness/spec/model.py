"""What all models of written files share: unknown keys are refused, numbers are numbers, units stand in the key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from harness.spec.document import did_you_mean

MISTAKE = "spec_mistake"
"""Error type of our own findings; the context carries ``text``, ``hint`` and the ``key`` below the model."""


def mistake(
    text: str, *, key: tuple[str | int, ...] = (), hint: str | None = None, no_key: bool = False
) -> PydanticCustomError:
    """To be raised in a validator: a mistake at ``key`` of the model, told in our own words. ``no_key`` says that there
    should be no such key, so that the rest can be looked at without it."""
    return PydanticCustomError(MISTAKE, "{text}", {"text": text, "key": key, "hint": hint, "no_key": no_key})


class SpecModel(BaseModel):
    """Base of every model here: frozen, closed, and an unknown key is answered with the nearest known one."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    refused: ClassVar[Mapping[str, str]] = {}
    """Keys that deserve a reason of their own, because people have grounds to write them."""

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        return tuple(f.alias or name for name, f in cls.model_fields.items())

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = cls.keys()
        for key in data:
            if key in known:
                continue
            if key in cls.refused:
                raise mistake(f"the key {key!r} is refused: {cls.refused[key]}", key=(key,), no_key=True)
            raise mistake(
                f"the key {key!r} is not known here", key=(key,), hint=did_you_mean(str(key), known), no_key=True
            )
        return data


LONGEST_S = 1_000_000
"""Nothing here lasts longer than eleven days; a number beyond that is a slip, and would fill memory with arrivals."""
MOST = 1_000_000

Seconds = Annotated[float, Strict(), Field(gt=0, le=LONGEST_S)]
SecondsFromZero = Annotated[float, Strict(), Field(ge=0, le=LONGEST_S)]
Millis = Annotated[float, Strict(), Field(gt=0)]
PerSecond = Annotated[float, Strict(), Field(gt=0, le=10_000)]
PerSecondFromZero = Annotated[float, Strict(), Field(ge=0, le=10_000)]
Ratio = Annotated[float, Strict(), Field(ge=0, le=1)]
Count = Annotated[int, Strict(), Field(ge=1, le=MOST)]
CountFromZero = Annotated[int, Strict(), Field(ge=0, le=MOST)]
Flag = Annotated[bool, Strict()]
Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]


_NAME = r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?"
_KEY = rf"({_NAME}/)?{_NAME}"
_VALUE = rf"({_NAME})?"
_REQUIREMENT = re.compile(
    rf"!?\s*{_KEY}|{_KEY}\s*(=|==|!=)\s*{_VALUE}|{_KEY}\s+(in|notin)\s*\(\s*{_VALUE}(\s*,\s*{_VALUE})*\s*\)"
)


def _label_selector(text: str) -> str:
    for requirement in re.split(r",(?![^(]*\))", text):
        if not _REQUIREMENT.fullmatch(requirement.strip()):
            raise mistake(
                f"{requirement.strip()!r} is not a label requirement",
                hint="write key=value, key!=value, key, !key or 'key in (a, b)', joined by commas",
            )
    return text


LabelSelector = Annotated[str, AfterValidator(_label_selector)]


def _object_name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", text):
        raise mistake(f"{text!r} is not a Kubernetes name", hint="lower-case letters, digits and '-', at most 63")
    return text


ObjectName = Annotated[str, AfterValidator(_object_name)]
