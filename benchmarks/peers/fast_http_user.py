"""Locust's own way: a FastHttpUser that streams. ``benchmarks/load.py`` runs it.

Each arrival has a greenlet, so that it is open loop too. ``BENCH_LINES`` says how lines are read: ``iter_lines``, which
Locust offers and which waits for 1,024 bytes (here five tokens, so their times are wrong), or ``readline`` of the
connection below it, which Locust does not offer and which gives right times.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import gevent  # type: ignore[import-untyped]  # ships no types
from gevent.pool import Pool  # type: ignore[import-untyped]  # ships no types
from locust import task
from locust.contrib.fasthttp import FastHttpUser

sys.path.insert(0, str(Path(__file__).parent))
from arrivals import arrivals_s
from reading import Reading

RATE = float(os.environ["BENCH_RATE"])
SECONDS = float(os.environ["BENCH_SECONDS"])
TOKENS = int(os.environ["BENCH_TOKENS"])
LINES = os.environ["BENCH_LINES"]
PATH = "/v1/chat/completions"


class Streams(FastHttpUser):  # type: ignore[misc]  # ships no types
    concurrency = 2000
    fixed_count = 1
    tokens = 0
    first_ns: ClassVar[dict[str, int]] = {}

    @task
    def send(self) -> None:
        pool = Pool()
        start, before_s = time.monotonic(), time.process_time()
        for i, t_s in enumerate(arrivals_s(RATE, SECONDS)):
            gevent.sleep(max(0.0, start + t_s - time.monotonic()))
            pool.spawn(self._one, f"1-{i}")
        pool.join()
        cpu_s = time.process_time() - before_s
        print(json.dumps({"tokens": Streams.tokens, "cpu_s": cpu_s, "first_ns": Streams.first_ns}), flush=True)
        self.environment.runner.quit()

    def _one(self, name: str) -> None:
        body: dict[str, Any] = {"model": "m", "stream": True, "max_tokens": TOKENS, "messages": []}
        reading = Reading()
        for line in self._lines(body, {"X-Request-Id": name}):
            reading.take(line)
        Streams.first_ns[name] = reading.first_ns
        Streams.tokens += reading.tokens if reading.whole(TOKENS) else 0

    def _lines(self, body: dict[str, Any], headers: dict[str, str]) -> Iterator[bytes | str]:
        if LINES == "iter_lines":
            yield from self.client.iter_lines(PATH, method="POST", json=body, headers=headers)
            return
        response = self.client.request("POST", PATH, stream=True, json=body, headers=headers)
        while line := response._response.readline(b"\n"):
            yield line
