"""The images of one node: pulled one after another, each once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random

from fakes.timing import Timing

IMAGE_BYTES = 9_000_000_000
"""What a CUDA serving image weighs; only shown, never counted with."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """Seconds of the clock, as a kubelet reports them."""

    pull_s: float
    with_waiting_s: float


class ImageStore:
    """A kubelet pulls serially by default: whoever comes second waits, and then finds a shared image there."""

    def __init__(self, timing: Timing, rng: Random) -> None:
        self._timing = timing
        self._rng = rng
        self._one_pull = asyncio.Lock()
        self.names: set[str] = set()

    async def pull(self, image: str) -> Pulled:
        loop = asyncio.get_running_loop()
        asked_s = loop.time()
        async with self._one_pull:
            began_s = loop.time()
            if image not in self.names:
                await asyncio.sleep(self._timing.draw_s(self._timing.durations.image_pull, self._rng))
                self.names.add(image)
            return Pulled(loop.time() - began_s, loop.time() - asked_s)


def pulled_message(image: str, pulled: Pulled) -> str:
    return (
        f'Successfully pulled image "{image}" in {go_duration(pulled.pull_s)} '
        f"({go_duration(pulled.with_waiting_s)} including waiting). Image size: {IMAGE_BYTES} bytes."
    )


def go_duration(seconds: float) -> str:
    """As Go prints a time.Duration truncated to milliseconds."""
    ms = int(seconds * 1000)
    if ms < 1000:
        return f"{ms}ms" if ms else "0s"
    minutes, rest_ms = divmod(ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    text = f"{rest_ms / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
