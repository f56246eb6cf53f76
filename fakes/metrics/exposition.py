"""Prometheus' text format, written: series, histograms and families as Python's own client prints them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"


def number(value: float) -> str:
    """As Python's Prometheus client prints it: seven digits and more in Go's exponent form."""
    text = repr(float(value))
    dot = text.find(".")
    if value > 0 and dot > 6 and "e" not in text:
        mantissa = f"{text[0]}.{text[1:dot]}{text[dot + 1 :]}".rstrip("0.")
        return f"{mantissa}e+{dot - 1:02d}"
    return text


def label_text(labels: Sequence[tuple[str, str]]) -> str:
    escaped = ((k, v.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")) for k, v in sorted(labels))
    inner = ",".join(f'{k}="{v}"' for k, v in escaped)
    return f"{{{inner}}}" if inner else ""


class Value:
    """One series of a gauge or a counter."""

    __slots__ = ("labels", "value")

    def __init__(self, labels: Sequence[tuple[str, str]], value: float = 0.0) -> None:
        self.labels = label_text(labels)
        self.value = value


@lru_cache(maxsize=1024)  # all servers of one model have the same
def _bucket_labels(labels: tuple[tuple[str, str], ...], bounds: tuple[float, ...]) -> list[str]:
    return [label_text([*labels, ("le", le)]) for le in (*map(number, bounds), "+Inf")]


class Histogram:
    __slots__ = ("_bucket_labels", "_counts", "bounds", "count", "labels", "sum")

    def __init__(self, labels: Sequence[tuple[str, str]], bounds: Sequence[float]) -> None:
        self.bounds = tuple(float(b) for b in bounds)
        self._counts = [0] * (len(bounds) + 1)
        self.labels = label_text(labels)
        self._bucket_labels = _bucket_labels(tuple(labels), self.bounds)
        self.sum = 0.0
        self.count = 0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value
        self.count += 1

    def lines(self, name: str) -> Iterator[str]:
        total = 0
        for labels, n in zip(self._bucket_labels, self._counts, strict=True):
            total += n
            yield f"{name}_bucket{labels} {number(total)}"
        yield f"{name}_count{self.labels} {number(self.count)}"
        yield f"{name}_sum{self.labels} {number(self.sum)}"


class Family:
    """A metric with its series. ``name`` of a counter ends in ``_total``. Its ``_created`` gauge follows, if wanted."""

    def __init__(self, name: str, kind: str, help: str, series: Sequence[Value] | Histogram) -> None:
        self.name = name
        self.kind = kind
        self.help = help
        self.series = series
        self.created = f"{name if isinstance(series, Histogram) else name.removesuffix('_total')}_created"

    def lines(self, created_s: float | None) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        if isinstance(self.series, Histogram):
            yield from self.series.lines(self.name)
            labels = [self.series.labels]
        else:
            for s in self.series:
                yield f"{self.name}{s.labels} {number(s.value)}"
            labels = [s.labels for s in self.series]
        if self.kind != "gauge" and created_s is not None:
            yield f"# HELP {self.created} {self.help}"
            yield f"# TYPE {self.created} gauge"
            for text in labels:
                yield f"{self.created}{text} {number(created_s)}"


class Sums:
    """Each metric's sum over its series, as a reader of the text would add them up who leaves buckets alone.

    What never changes is settled once, for a scrape of a thousand pods reads the same few dozen numbers each time.
    """

    def __init__(self, families: Iterable[Family], created_s: float | None = None) -> None:
        self._fixed: dict[str, float] = {}
        self._single: list[tuple[str, Value]] = []
        self._several: list[tuple[str, Sequence[Value]]] = []
        self._histograms: list[tuple[str, str, Histogram]] = []
        for family in families:
            self._add(family, created_s)

    def _add(self, family: Family, created_s: float | None) -> None:
        series = family.series
        if isinstance(series, Histogram):
            self._histograms.append((f"{family.name}_count", f"{family.name}_sum", series))
        elif len(series) == 1:
            self._single.append((family.name, series[0]))
        elif series:
            self._several.append((family.name, series))
        count = 1 if isinstance(series, Histogram) else len(series)
        if family.kind != "gauge" and created_s is not None and count:
            self._fixed[family.created] = created_s * count

    def read(self) -> dict[str, float]:
        found = self._fixed.copy()
        for name, value in self._single:
            found[name] = value.value
        for name, values in self._several:
            found[name] = sum(v.value for v in values)
        for count, total, histogram in self._histograms:
            found[count] = histogram.count
            found[total] = histogram.sum
        return found


def exposition(families: Iterable[Family], created_s: float | None = None) -> str:
    """``created_s``: unix time for the ``_created`` gauges of counters; None leaves them out."""
    return "".join(f"{line}\n" for family in families for line in family.lines(created_s))
