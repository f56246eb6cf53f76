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

    def observe(self, value: float, times: int = 1) -> None:
        self._counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times
        self.count += times

    def lines(self, name: str) -> Iterator[str]:
        total = 0
        for labels, n in zip(self._bucket_labels, self._counts, strict=True):
            total += n
            yield f"{name}_bucket{labels} {number(total)}"
        yield f"{name}_count{self.labels} {number(self.count)}"
        yield f"{name}_sum{self.labels} {number(self.sum)}"


class Summary:
    """Count and sum without quantiles, which Python's client does not compute."""

    __slots__ = ("count", "labels", "sum")

    def __init__(self, labels: Sequence[tuple[str, str]]) -> None:
        self.labels = label_text(labels)
        self.sum = 0.0
        self.count = 0

    def observe(self, value: float) -> None:
        self.sum += value
        self.count += 1

    def lines(self, name: str) -> Iterator[str]:
        yield f"{name}_count{self.labels} {number(self.count)}"
        yield f"{name}_sum{self.labels} {number(self.sum)}"


Series = Sequence[Value] | Sequence[Histogram] | Sequence[Summary]


class Family:
    """A metric with its series. ``name`` of a counter ends in ``_total``. Its ``_created`` gauge follows, if wanted."""

    def __init__(self, name: str, kind: str, help: str, series: Series | Histogram, *, created: bool = True) -> None:
        self.name = name
        self.kind = kind
        self.help = help
        self.series: Series = [series] if isinstance(series, Histogram) else series
        stem = name.removesuffix("_total") if kind == "counter" else name
        self.created = f"{stem}_created" if created and kind != "gauge" else ""

    def lines(self, created_s: float | None) -> Iterator[str]:
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for s in self.series:
            if isinstance(s, Value):
                yield f"{self.name}{s.labels} {number(s.value)}"
            else:
                yield from s.lines(self.name)
        if self.created and created_s is not None and self.series:
            yield f"# HELP {self.created} {self.help}"
            yield f"# TYPE {self.created} gauge"
            for s in self.series:
                yield f"{self.created}{s.labels} {number(created_s)}"


class Sums:
    """Each metric's sum over its series, as a reader of the text would add them up who leaves buckets alone.

    What never changes is settled once, for a scrape of a thousand pods reads the same few dozen numbers each time.
    """

    def __init__(self, families: Iterable[Family], created_s: float | None = None) -> None:
        self._fixed: dict[str, float] = {}
        self._single: list[tuple[str, Value]] = []
        self._several: list[tuple[str, list[Value]]] = []
        self._observed: list[tuple[str, str, Sequence[Histogram | Summary]]] = []
        for family in families:
            self._add(family, created_s)

    def _add(self, family: Family, created_s: float | None) -> None:
        values = [s for s in family.series if isinstance(s, Value)]
        observed = [s for s in family.series if not isinstance(s, Value)]
        if observed:
            self._observed.append((f"{family.name}_count", f"{family.name}_sum", observed))
        elif len(values) == 1:
            self._single.append((family.name, values[0]))
        elif values:
            self._several.append((family.name, values))
        if family.created and created_s is not None and family.series:
            self._fixed[family.created] = created_s * len(family.series)

    def read(self) -> dict[str, float]:
        found = self._fixed.copy()
        for name, value in self._single:
            found[name] = value.value
        for name, values in self._several:
            found[name] = sum(v.value for v in values)
        for count, total, observed in self._observed:
            if len(observed) == 1:
                found[count] = observed[0].count
                found[total] = observed[0].sum
            else:
                found[count] = sum(o.count for o in observed)
                found[total] = sum(o.sum for o in observed)
        return found


def exposition(families: Iterable[Family], created_s: float | None = None) -> str:
    """``created_s``: unix time for the ``_created`` gauges of counters; None leaves them out."""
    return "".join(f"{line}\n" for family in families for line in family.lines(created_s))
