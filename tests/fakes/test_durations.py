"""Durations of Kubernetes' objects and settings."""

from __future__ import annotations

import pytest

from fakes.durations import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"), [("10s", 10), ("5m0s", 300), ("1m15s", 75), ("1h0m0.5s", 3600.5), ("250ms", 0.25), ("0s", 0)]
)
def test_durations_are_read_as_go_writes_them(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds
