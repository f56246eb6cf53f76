"""Prometheus' text format, written and read."""

from __future__ import annotations

import math

import pytest

from fakes.metrics.exposition import Family, Histogram, Value, exposition, number
from fakes.metrics.parse import BadExposition, Sample, parse


def test_what_is_written_is_read_back() -> None:
    odd = 'a"b\\c\nd, e="f"}'
    histogram = Histogram([("engine", "0")], (0.1, 1))
    for value in (0.1, 0.5, 7):
        histogram.observe(value)
    families = [
        Family("g", "gauge", "A gauge.", [Value([("k", odd), ("a", "")], 1.5), Value([("k", "2"), ("a", "b")], -3)]),
        Family("c_total", "counter", "A counter.", [Value([], 12345678)]),
        Family("h", "histogram", "A histogram.", histogram),
    ]
    text = exposition(families, created_s=1795970085.6031)
    assert list(parse(text)) == [
        Sample("g", {"a": "", "k": odd}, 1.5),
        Sample("g", {"a": "b", "k": "2"}, -3),
        Sample("c_total", {}, 12345678),
        Sample("c_created", {}, 1795970085.6031),
        Sample("h_bucket", {"engine": "0", "le": "0.1"}, 1),
        Sample("h_bucket", {"engine": "0", "le": "1.0"}, 2),
        Sample("h_bucket", {"engine": "0", "le": "+Inf"}, 3),
        Sample("h_count", {"engine": "0"}, 3),
        Sample("h_sum", {"engine": "0"}, 7.6),
        Sample("h_created", {"engine": "0"}, 1795970085.6031),
    ]
    names = [s.name for s in parse(text, buckets=False)]
    assert names == ["g", "g", "c_total", "c_created", "h_count", "h_sum", "h_created"]


def test_lines_look_as_captured() -> None:
    text = exposition([Family("vllm:x_total", "counter", "Help.", [Value([("model_name", "m"), ("engine", "0")], 2)])])
    assert (
        text == '# HELP vllm:x_total Help.\n# TYPE vllm:x_total counter\nvllm:x_total{engine="0",model_name="m"} 2.0\n'
    )


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0.0"), (1795970085.6031, "1.7959700856031e+09"), (123456, "123456.0"), (1e21, "1e+21")]
)
def test_numbers_as_pythons_client_prints_them(value: float, text: str) -> None:
    assert number(value) == text


def test_other_peoples_text_is_read_too() -> None:
    text = '# EOF\nup 1 1795970085000\n\nnan{} NaN\ninf{le="+Inf",} +Inf\n'
    up, nan, inf = parse(text)
    assert (up.name, up.value) == ("up", 1)
    assert math.isnan(nan.value)
    assert (inf.labels, inf.value) == ({"le": "+Inf"}, math.inf)


@pytest.mark.parametrize("line", ["<html>", "x{a=b} 1", "x one", "x"])
def test_what_is_not_the_format_is_said(line: str) -> None:
    with pytest.raises(BadExposition):
        list(parse(line))
