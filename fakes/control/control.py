"""What faults may do to a world: instances and their interruptions, knobs, and verbs that do something once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from fakes.cloud.cloud import Cloud, Instance
from fakes.control.knobs import Knobs, UnknownName, done
from harness.kube.port import Json

Act = Callable[[str, Json], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Verb:
    targets: Callable[[], Collection[str]]
    act: Act


class Control:
    """One per world. The HTTP API and virtual time call the same methods."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.knobs = Knobs()
        self._verbs: dict[str, Verb] = {}
        self.watches_begun: Callable[[], dict[str, int]] = dict
        """By client, summed over its parts."""

    def add_verb(self, name: str, targets: Callable[[], Collection[str]], act: Act) -> None:
        self._verbs[name] = Verb(targets, act)

    async def do(self, verb: str, target: str, arguments: Json) -> None:
        if verb not in self._verbs:
            raise UnknownName(f"there is no verb {verb}; there are: {', '.join(sorted(self._verbs))}")
        known = self._verbs[verb].targets()
        if target not in known:
            raise UnknownName(f"{verb} has no target {target}; there are: {', '.join(sorted(known)) or 'none'}")
        await done(self._verbs[verb].act(target, arguments))

    def instances(self) -> list[Json]:
        return [view(instance) for instance in self.cloud.instances.values()]

    def pools(self) -> list[Json]:
        return [
            {"name": p.name, "capacity_type": p.capacity_type, "zone": p.zone, "instance_type": p.instance_type}
            for p in self.cloud.pools.values()
        ]


def view(instance: Instance) -> Json:
    """``interrupt_at_s`` is in seconds of the world's monotonic clock; ``interrupt_in_s`` counts down on it."""
    at_s = instance.interrupt_at_s
    return {
        "id": instance.id,
        "node": instance.node,
        "pool": instance.pool.name,
        "capacity_type": instance.pool.capacity_type,
        "price_per_hour": instance.pool.price_per_hour,
        "state": instance.state.value,
        "interrupt_at_s": at_s,
        "interrupt_in_s": None if at_s is None else max(0.0, at_s - asyncio.get_running_loop().time()),
    }
