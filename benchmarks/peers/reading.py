"""What anybody who measures a stream must do with its lines, whichever client they come from: as little as possible.

Each event is stamped when the client hands it out; tokens are counted, the first and the largest gap kept, and the
ending checked (``finish_reason``, ``usage``, ``[DONE]``). No outcomes, no deadlines, no records: ours does those, too.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass


@dataclass(slots=True)
class Reading:
    tokens: int = 0
    first_ns: int = 0
    last_ns: int = 0
    gap_max_ns: int = 0
    finish_reason: str | None = None
    usage_tokens: int | None = None
    done: bool = False

    def take(self, line: bytes | str) -> None:
        now_ns = time.monotonic_ns()
        text = line.decode() if isinstance(line, bytes) else line
        if not text.startswith("data: "):
            return
        if text.startswith("data: [DONE]"):
            self.done = True
            return
        event = json.loads(text[6:])
        if event.get("usage"):
            self.usage_tokens = event["usage"]["completion_tokens"]
        if not event["choices"]:
            return
        choice = event["choices"][0]
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        if choice.get("delta", {}).get("content"):
            self.tokens += 1
            if self.first_ns:
                self.gap_max_ns = max(self.gap_max_ns, now_ns - self.last_ns)
            else:
                self.first_ns = now_ns
            self.last_ns = now_ns

    def whole(self, wanted: int) -> bool:
        return self.done and self.finish_reason == "length" and self.usage_tokens == self.tokens == wanted
