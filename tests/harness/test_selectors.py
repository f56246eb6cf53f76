from __future__ import annotations

from typing import Any

import pytest

from harness.selectors import selector_of

LLM = {"app": "llm", "pool": "spot"}


@pytest.mark.parametrize(
    "raw, matches",
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "llm"}}, True),
        ({"matchLabels": {"app": "llm", "pool": "other"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["llm", "x"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["llm"]}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "zone", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}, True),
        ({"matchLabels": {"app": "llm"}, "matchExpressions": [{"key": "zone", "operator": "Exists"}]}, False),
    ],
)
def test_a_label_selector_matches_as_kubernetes_says(raw: dict[str, Any] | None, matches: bool) -> None:
    assert selector_of(raw).matches(LLM) is matches
