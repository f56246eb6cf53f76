"""The images of a world and of one node: which can be had, how long a pull takes, one pull after another per node."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random

from fakes.timing import Timing

IMAGE_BYTES = 9_000_000_000
"""What a CUDA serving image weighs; only shown, never counted with."""
REFUSED_S = 0.5
"""Scenario seconds until a registry has said no."""
MISSING_TAG = "missing"
"""An image of this tag does not exist, so that a manifest can ask for a bad image."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """Seconds of the clock, as a kubelet reports them."""

    pull_s: float
    with_waiting_s: float


class PullFailed(Exception):
    """The message is the container runtime's."""


@dataclass(slots=True)
class Registry:
    """Where all nodes of a world pull from."""

    slow_by: float = 1.0
    """How many times as long as it should every pull takes."""
    _failing: dict[str, str] = field(default_factory=dict)

    def fail(self, image: str, why: str) -> None:
        """From now on no node that lacks the image gets it; ``*`` stands for every image."""
        self._failing[image] = why

    def heal(self, image: str) -> None:
        """Idempotent."""
        self._failing.pop(image, None)

    def problem(self, image: str) -> str | None:
        """What a pull of the image would fail with."""
        head = f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": '
        if why := self._failing.get(image) or self._failing.get("*"):
            return head + why
        return f"{head}{image}: not found" if image.rpartition(":")[2] == MISSING_TAG else None


class ImageStore:
    """A kubelet pulls serially by default: whoever comes second waits, and then finds a shared image there."""

    def __init__(self, registry: Registry, timing: Timing, rng: Random) -> None:
        self._registry = registry
        self._timing = timing
        self._rng = rng
        self._one_pull = asyncio.Lock()
        self.names: set[str] = set()

    async def pull(self, image: str) -> Pulled:
        """Raises ``PullFailed``."""
        loop = asyncio.get_running_loop()
        asked_s = loop.time()
        async with self._one_pull:
            began_s = loop.time()
            if image not in self.names:
                await self._fetch(image)
            return Pulled(loop.time() - began_s, loop.time() - asked_s)

    async def _fetch(self, image: str) -> None:
        if why := self._registry.problem(image):
            await asyncio.sleep(self._timing.clock_s(REFUSED_S))
            raise PullFailed(why)
        took_s = self._timing.draw_s(self._timing.durations.image_pull, self._rng)
        await asyncio.sleep(took_s * self._registry.slow_by)
        self.names.add(image)


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
