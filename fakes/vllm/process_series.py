"""What a Python server says of its process and of its HTTP handlers, beside what its engine does.

The process is an emulated one. Its CPU seconds are what vLLM's API process is known to use (BLIS' trained model of
vLLM: 15.6 ms a request and 46 us a token), so that they grow with the load and are the same for the same seed; memory
and the garbage collector's counts are those of an idle server, and stay.
"""

from __future__ import annotations

from fakes.metrics.exposition import Family, Histogram, Summary, Value

CPU_S_AT_START = 13.0
CPU_S_PER_REQUEST = 15.6e-3
CPU_S_PER_TOKEN = 46e-6
OPEN_FILES = 43
PYTHON = [("implementation", "CPython"), ("major", "3"), ("minor", "11"), ("patchlevel", "7"), ("version", "3.11.7")]
HIGHR_BUCKETS_S = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60,
)  # fmt: skip
LOWR_BUCKETS_S = (0.1, 0.5, 1)
SIZE_HELP = (
    "Content length of {} {} by handler. Only value of header is respected. "
    "Otherwise ignored. No percentile calculated. "
)  # fmt: skip


class ProcessSeries:
    def __init__(self, created_s: float) -> None:
        self._cpu = Value([], CPU_S_AT_START)
        self._files = Value([], OPEN_FILES)
        collected = (14957.0, 2166.0, 1203.0)
        collections = (1642.0, 149.0, 10.0)
        self.families = [
            self._by_generation("objects_collected_total", "Objects collected during gc", collected),
            self._by_generation("objects_uncollectable_total", "Uncollectable objects found during GC", (0, 0, 0)),
            self._by_generation("collections_total", "Number of times this generation was collected", collections),
            Family("python_info", "gauge", "Python platform information", [Value(PYTHON, 1)]),
            self._process("virtual_memory_bytes", "Virtual memory size in bytes.", Value([], 2200817664)),
            self._process("resident_memory_bytes", "Resident memory size in bytes.", Value([], 794959872)),
            self._process(
                "start_time_seconds", "Start time of the process since unix epoch in seconds.", Value([], created_s)
            ),
            self._process("cpu_seconds_total", "Total user and system CPU time spent in seconds.", self._cpu),
            self._process("open_fds", "Number of open file descriptors.", self._files),
            self._process("max_fds", "Maximum number of open file descriptors.", Value([], 20000)),
        ]

    def refresh(self, *, requests: float, tokens: float, in_flight: int) -> None:
        self._cpu.value = CPU_S_AT_START + requests * CPU_S_PER_REQUEST + tokens * CPU_S_PER_TOKEN
        self._files.value = OPEN_FILES + in_flight

    @staticmethod
    def _by_generation(name: str, help: str, values: tuple[float, ...]) -> Family:
        series = [Value([("generation", str(i))], value) for i, value in enumerate(values)]
        return Family(f"python_gc_{name}", "counter", help, series, created=False)

    @staticmethod
    def _process(name: str, help: str, value: Value) -> Family:
        kind = "counter" if name.endswith("_total") else "gauge"
        return Family(f"process_{name}", kind, help, [value], created=False)


class HttpSeries:
    """By handler, from its first request on. vLLM does not count its own /health, /metrics, /load, /ping, /version."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], Value] = {}
        self._sizes: dict[str, tuple[Summary, Summary]] = {}
        self._durations: dict[tuple[str, str], Histogram] = {}
        self._highr = Histogram([], HIGHR_BUCKETS_S)
        self.requests = 0

    def observe(
        self, handler: str, method: str, status: int, *, asked_bytes: int, answered_bytes: int, seconds: float
    ) -> None:
        """Sizes are those that headers tell: a stream has none."""
        self.requests += 1
        key = (handler, method, f"{status // 100}xx")
        if key not in self._counts:
            self._counts[key] = Value([("handler", handler), ("method", method), ("status", key[2])])
        self._counts[key].value += 1
        if handler not in self._sizes:
            self._sizes[handler] = Summary([("handler", handler)]), Summary([("handler", handler)])
        asked, answered = self._sizes[handler]
        asked.observe(asked_bytes)
        answered.observe(answered_bytes)
        duration = self._durations.get((handler, method))
        if duration is None:
            labels = [("handler", handler), ("method", method)]
            duration = self._durations[handler, method] = Histogram(labels, LOWR_BUCKETS_S)
        duration.observe(seconds)
        self._highr.observe(seconds)

    @property
    def known(self) -> int:
        """How many series there are; it grows with each new handler, method or status."""
        return len(self._counts) + len(self._durations)

    def families(self) -> list[Family]:
        high = Family(
            "http_request_duration_highr_seconds", "histogram",
            "Latency with many buckets but no API specific labels. Made for more accurate percentile calculations. ",
            self._highr,
        )  # fmt: skip
        sizes = list(self._sizes.values())
        return [
            Family(
                "http_requests_total", "counter", "Total number of requests by method, status and handler.",
                list(self._counts.values()),
            ),
            Family(
                "http_request_size_bytes", "summary", SIZE_HELP.format("incoming", "requests"), [s[0] for s in sizes]
            ),
            Family(
                "http_response_size_bytes", "summary", SIZE_HELP.format("outgoing", "responses"), [s[1] for s in sizes]
            ),
            high,
            Family(
                "http_request_duration_seconds", "histogram",
                "Latency with only few buckets by handler. Made to be only used if aggregation by handler is "
                "important. ",
                list(self._durations.values()),
            ),
        ]  # fmt: skip
