"""Which names, label keys and label values are taken, and the words in which others are refused.

As apimachinery's pkg/util/validation says them.
"""

from __future__ import annotations

import re
from functools import lru_cache

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")

SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_PREFIX_TEXT = (
    "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. "
    "'example.com/MyName')"
)


def too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def subdomain_problems(text: str) -> list[str]:
    found = [too_long(253)] if len(text) > 253 else []
    return found if _SUBDOMAIN.fullmatch(text) else [*found, SUBDOMAIN_TEXT]


def label_problems(text: str) -> list[str]:
    """Of a DNS label (RFC 1123), as names of containers and namespaces are."""
    found = [too_long(63)] if len(text) > 63 else []
    return found if _LABEL.fullmatch(text) else [*found, LABEL_TEXT]


@lru_cache(maxsize=4096)
def label_key_problems(key: str) -> tuple[str, ...]:
    parts = key.split("/")
    if len(parts) > 2:
        return (_PREFIX_TEXT,)
    found = []
    if len(parts) == 2:
        prefix = parts[0]
        if not prefix:
            found.append("prefix part must be non-empty")
        else:
            found += [f"prefix part {p}" for p in subdomain_problems(prefix)]
    name = parts[-1]
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > 63:
        found.append(f"name part {too_long(63)}")
    if not _QUALIFIED.fullmatch(name):
        found.append(_NAME_PART)
    return tuple(found)


def label_key_problem(key: str) -> str:
    """All of it in one sentence; empty for a good key."""
    return "; ".join(label_key_problems(key))


@lru_cache(maxsize=4096)
def label_value_problems(value: str) -> tuple[str, ...]:
    found = [too_long(63)] if len(value) > 63 else []
    if value and not _QUALIFIED.fullmatch(value):
        found.append(_VALUE_TEXT)
    return tuple(found)


def label_value_problem(value: str) -> str:
    return "; ".join(label_value_problems(value))
