"""Locust's own way: a FastHttpUser that streams. ``benchmarks/load.py`` runs it.

Its response is iterated line by line as it comes; each arrival has a greenlet, so that it is open loop too.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

import gevent  # type: ignore[import-untyped]  # ships no types
from gevent.pool import Pool  # type: ignore[import-untyped]  # ships no types
from locust import task
from locust.contrib.fasthttp import FastHttpUser

RATE = float(os.environ["BENCH_RATE"])
SECONDS = float(os.environ["BENCH_SECONDS"])
TOKENS = int(os.environ["BENCH_TOKENS"])


class Streams(FastHttpUser):  # type: ignore[misc]  # ships no types
    concurrency = 2000
    fixed_count = 1
    tokens = 0

    @task
    def send(self) -> None:
        pool = Pool()
        start, before_s = time.monotonic(), time.process_time()
        for i in range(round(RATE * SECONDS)):
            gevent.sleep(max(0.0, start + i / RATE - time.monotonic()))
            pool.spawn(self._one)
        pool.join()
        cpu_s = time.process_time() - before_s
        print(json.dumps({"tokens": Streams.tokens, "cpu_s": cpu_s}), flush=True)
        self.environment.runner.quit()

    def _one(self) -> None:
        body: dict[str, Any] = {"model": "m", "stream": True, "max_tokens": TOKENS, "messages": []}
        for line in self.client.iter_lines("/v1/chat/completions", method="POST", json=body):
            if line.startswith("data: ") and line != "data: [DONE]":
                event = json.loads(line[6:])
                if event["choices"] and event["choices"][0].get("delta", {}).get("content"):
                    Streams.tokens += 1
