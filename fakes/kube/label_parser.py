"""The grammar of label selectors, token by token as apimachinery's pkg/labels reads it, so that refusals read alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fakes.kube.names import label_key_problem, label_value_problem
from fakes.kube.status import bad_request
from harness.kube.port import ApiError

Labels = Mapping[str, str]
_SYMBOLS = {"=", "==", "!=", "!", "(", ")", ",", ">", "<"}
_TOKEN = re.compile(r"\s*(?:(?P<symbol>==|!=|[=!(),<>])|(?P<word>[^\s=!(),<>]+))")
_OPERATORS = "in, notin, =, ==, !=, gt, lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: str
    values: tuple[str, ...]

    def matcher(self) -> Callable[[Labels], bool]:
        key, values = self.key, frozenset(self.values)
        match self.operator:
            case "exists":
                return lambda labels: key in labels
            case "!":
                return lambda labels: key not in labels
            case "in" | "=" | "==":
                return lambda labels: labels.get(key) in values
            case "notin" | "!=":
                return lambda labels: labels.get(key) not in values
        bound, above = int(self.values[0]), self.operator == ">"
        return lambda labels: _compared(labels.get(key), bound, above)


def _compared(value: str | None, bound: int, above: bool) -> bool:
    try:
        number = int(value) if value is not None else None
    except ValueError:
        return False
    return number is not None and (number > bound if above else number < bound)


def parse(selector: str) -> list[Requirement]:
    """Raises 400."""
    return _Parser(selector).requirements()


def _unparsed(why: str) -> ApiError:
    return bad_request(f"unable to parse requirement: {why}")


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = [m["symbol"] or m["word"] for m in _TOKEN.finditer(text)]
        self._place = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while (token := self._ahead()) != "":
            if token in _SYMBOLS and token != "!":
                raise bad_request(f"found '{token}', expected: !, identifier, or 'end of string'")
            found.append(self._requirement())
            token = self._next()
            if token == ",":
                after = self._ahead()
                if after == "" or (after in _SYMBOLS and after != "!"):
                    raise bad_request(f"found '{after}', expected: identifier after ','")
            elif token != "":
                raise bad_request(f"found '{token}', expected: ',' or 'end of string'")
        return found

    def _ahead(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._ahead()
        self._place += 1
        return token

    def _requirement(self) -> Requirement:
        key, operator = self._next(), ""
        if key == "!":
            key, operator = self._next(), "!"
        if key == "" or key in _SYMBOLS:
            raise _unparsed(f"found '{key}', expected: identifier")
        if problem := label_key_problem(key):
            raise _unparsed(f'<nil>: Invalid value: "{key}": {problem}')
        if operator == "!" and self._ahead() in ("", ","):
            return Requirement(key, "!", ())
        if operator == "" and self._ahead() in ("", ","):
            return Requirement(key, "exists", ())
        operator = self._next()
        if operator in ("in", "notin"):
            values = self._list()
        elif operator in ("=", "==", "!=", ">", "<"):
            values = (self._exact(),)
        else:
            raise _unparsed(f"found '{operator}', expected: {_OPERATORS}")
        return _checked(Requirement(key, operator, values))

    def _exact(self) -> str:
        if self._ahead() in ("", ","):
            return ""
        token = self._next()
        if token in _SYMBOLS:
            raise _unparsed(f"found '{token}', expected: identifier")
        return token

    def _list(self) -> tuple[str, ...]:
        token = self._next()
        if token != "(":
            raise _unparsed(f"found '{token}' expected: '('")
        first = self._ahead()
        if first == ")":
            self._next()
            return ("",)
        if first == "" or (first in _SYMBOLS and first != ","):
            raise _unparsed(f"found '{first}', expected: ',', ')' or identifier")
        values = self._identifiers()
        if self._next() != ")":
            raise _unparsed(f"found '{first}', expected: ')'")
        return tuple(sorted(values))

    def _identifiers(self) -> set[str]:
        values: set[str] = set()
        while True:
            token = self._next()
            if token == ",":
                if not values:
                    values.add("")
                if self._ahead() == ")":
                    return values | {""}
                if self._ahead() == ",":
                    values.add("")
            elif token != "" and token not in _SYMBOLS:
                values.add(token)
                after = self._ahead()
                if after == ")":
                    return values
                if after != ",":
                    raise _unparsed(f"found '{after}', expected: ',' or ')'")
            else:
                raise _unparsed(f"found '{token}', expected: ',', or identifier")


def _checked(found: Requirement) -> Requirement:
    problems = []
    if found.operator in (">", "<"):
        problems += [
            f"values[{i}]: Invalid value: \"{v}\": for 'Gt', 'Lt' operators, the value must be an integer"
            for i, v in enumerate(found.values)
            if not re.fullmatch(r"[+-]?\d{1,18}", v)
        ]
    for i, value in enumerate(found.values):
        if problem := label_value_problem(value):
            problems.append(f'values[{i}][{found.key}]: Invalid value: "{value}": {problem}')
    if problems:
        raise _unparsed(problems[0] if len(problems) == 1 else "[" + ", ".join(problems) + "]")
    return found
