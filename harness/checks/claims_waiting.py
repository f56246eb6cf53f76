"""Pods that wait for devices by claim, and what stood free meanwhile: three healthy GPUs of four help nobody."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.checks.units import both, count
from harness.history.devices import SLICE, Held, Tainted, devices_of
from harness.history.lives import Life, going, lives, node_of, terminal, unschedulable

if TYPE_CHECKING:
    from harness.history.reader import History


@dataclass(frozen=True, slots=True)
class Waited:
    """A pod with claims that found no room from ``start_ns`` to ``end_ns``. ``free``: devices that were neither held
    nor tainted halfway, by pool."""

    pod: Life
    index: int
    start_ns: int
    end_ns: int
    free: tuple[tuple[str, int], ...]

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns

    def told(self, time_scale: float) -> str:
        stood = " and ".join(f"{count(n, 'healthy device')} of {pool}" for pool, n in self.free)
        span = both(self.length_ns, time_scale)
        return f"{self.pod.name} found no devices for {span}, while {stood or 'none'} stood free"


def waits(history: History, every: tuple[Held, ...], taints: tuple[Tainted, ...]) -> list[Waited]:
    """The longest first."""
    found = []
    for pod in lives(history.objects, "Pod"):
        if not pod.last.get("spec", {}).get("resourceClaims") or (refused := pod.when(unschedulable)) is None:
            continue
        over = pod.when(lambda p: bool(node_of(p)) or going(p) or terminal(p)) or pod.gone
        end_ns = over.t_ns if over else history.recorded_until_ns
        free = _free(history, every, taints, (refused.t_ns + end_ns) // 2)
        found.append(Waited(pod, refused.index, refused.t_ns, end_ns, free))
    return sorted(found, key=lambda w: -w.length_ns)


def _free(
    history: History, every: tuple[Held, ...], taints: tuple[Tainted, ...], t_ns: int
) -> tuple[tuple[str, int], ...]:
    taken = {h.device for h in every if h.event.t_ns <= t_ns and (h.end_ns is None or h.end_ns > t_ns)}
    taken |= {t.device for t in taints if t.start_ns <= t_ns and (t.end_ns is None or t.end_ns > t_ns)}
    there = (device for life in lives(history.objects, SLICE) for device in devices_of(life.at(t_ns)))
    return tuple(sorted(Counter(pool for driver, pool, name in there if (driver, pool, name) not in taken).items()))
