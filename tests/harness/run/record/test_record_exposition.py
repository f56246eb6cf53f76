from __future__ import annotations

import math

import pytest

from harness.run.record.exposition import MetricSample, parse_metrics, parse_quantity

TEXT = """\
# HELP gateway_requests_total Answers begun.
# TYPE gateway_requests_total counter
gateway_requests_total{pod="llm-0",code="200"} 12
gateway_requests_in_flight 3.0 1700000000000
odd{text="a \\"b\\", c\\\\d\\ne"} NaN
step_bucket{le="0.1"} 4
step_sum 1e-3
"""


def test_prometheus_text() -> None:
    samples = list(parse_metrics(TEXT))
    assert samples[:2] == [
        MetricSample("gateway_requests_total", {"pod": "llm-0", "code": "200"}, 12),
        MetricSample("gateway_requests_in_flight", {}, 3),
    ]
    assert samples[2].labels == {"text": 'a "b", c\\d\ne'} and math.isnan(samples[2].value)
    assert samples[3:] == [MetricSample("step_sum", {}, 0.001)]


@pytest.mark.parametrize("line", ["nonsense", "a{b=c} 1", 'a{b="c"} one', "<html>"])
def test_what_is_no_metric_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        list(parse_metrics(line))


@pytest.mark.parametrize(
    "text, value",
    [("0", 0), ("3", 3), ("2500m", 2.5), ("12k", 12_000), ("1Ki", 1024), ("1e3", 1000), ("-1.5", -1.5), ("7u", 7e-6)],
)
def test_quantities(text: str, value: float) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize("text", ["", "m", "1 k", "1kb", "one"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_quantity(text)
