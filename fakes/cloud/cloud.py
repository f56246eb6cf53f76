"""A cloud: pools of instances with limited stock, launch delays, spot interruptions that end in a power cut.

The rule of stock: an instance that is terminated goes back to its pool, one that the cloud interrupted does not. A spot
pool of stock 1 whose only instance is reclaimed stays empty.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from fakes.cloud.trouble import CloudError as CloudError
from fakes.cloud.trouble import HalfGroup, Trouble
from fakes.cloud.trouble import OutOfStock as OutOfStock
from fakes.config import PlantedBug, PoolConfig
from fakes.nodes.labels import instance_id
from fakes.nodes.machine import Machine
from fakes.timing import Timing


class InstanceState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    INTERRUPTING = "interrupting"
    TERMINATED = "terminated"


class UnknownInstance(CloudError):
    """No instance has this id."""


class WrongState(CloudError):
    """The instance exists, but this cannot be done to it now."""


@dataclass(slots=True)
class Instance:
    machine: Machine
    state: InstanceState
    launched_s: float
    """Seconds of the event loop, as all ``_s`` fields here."""
    booted_s: float | None = None
    interrupt_at_s: float | None = None
    reclaimed: bool = False
    """Whether the cloud wants it back: then it never returns to stock."""
    terminated_s: float | None = None

    @property
    def id(self) -> str:
        return instance_id(self.machine.name)

    @property
    def node(self) -> str:
        return self.machine.name

    @property
    def pool(self) -> PoolConfig:
        return self.machine.pool


Listener = Callable[[Instance], None]
SHORT_NOTICE_S = 5.0
"""Scenario seconds that are left of any notice, under the planted bug."""


class Cloud:
    """``boot(instance)`` powers a machine on, ``lost(instance)`` is called when the power of one that was on goes off,
    whatever the cause. Both run synchronously, ``lost`` before the listeners of ``on_gone``."""

    def __init__(
        self,
        pools: Sequence[PoolConfig],
        timing: Timing,
        rng: Random,
        boot: Listener,
        lost: Listener,
        bugs: Collection[PlantedBug] = (),
        machines: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """``machines``: by pool, those that there are to give, by name. One that was given back is given again. Without
        it each instance is a new one."""
        self._machines = machines
        self.pools = {pool.name: pool for pool in pools}
        self.instances: dict[str, Instance] = {}
        self.on_notice: list[Listener] = []
        self.on_gone: list[Listener] = []
        self._timing = timing
        self._rng = rng
        self._bugs = frozenset(bugs)
        self._boot = boot
        self._lost = lost
        self._stock = {pool.name: pool.stock for pool in pools}
        self._numbers = {pool.name: 0 for pool in pools}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.on_rebalance: list[Listener] = []
        self.trouble = Trouble()
        self._half_groups: dict[str, list[Instance]] = {}
        self._releases: dict[str, asyncio.TimerHandle] = {}

    def start(self) -> None:
        """Boots the instances that exist at the start."""
        for pool in self.pools.values():
            for _ in range(pool.nodes):
                self._power_on(self._new(pool, self.next_name(pool.name), provisioned=False))

    def stop(self) -> None:
        """The world ends: no launch completes any more and no deadline strikes."""
        for timer in (*self._timers.values(), *self._releases.values()):
            timer.cancel()
        self._timers.clear()

    def next_name(self, pool: str) -> str:
        """A node name that was never used, or that of a machine that nobody uses now."""
        if self._machines is not None:
            return self._free_machine(pool)
        self._numbers[pool] += 1
        return f"{pool}-{self._numbers[pool]}"

    def _free_machine(self, pool: str) -> str:
        """Those that were never used come first, so that what is looked at afterwards still has one story."""
        assert self._machines is not None
        by_name = {name: self.instances.get(instance_id(name)) for name in self._machines[pool]}
        free = [n for n, i in by_name.items() if i is None or (i.state is InstanceState.TERMINATED and not i.reclaimed)]
        free.sort(key=lambda name: by_name[name] is not None)
        if not free:
            raise OutOfStock(f"pool {pool} has no machine left")
        return free[0]

    def stock(self, pool: str) -> int:
        """How many more instances the pool can give."""
        return self.trouble.left(pool, self._stock[pool])

    def launch(self, pool: str, node: str | None = None) -> Instance:
        """Accepts the order at once; the machine powers on a launch delay later. Raises ``CloudError``: ``OutOfStock``
        where the order may be filled elsewhere."""
        self.trouble.check_launch(self.pools[pool], self._existing(pool))
        if self.stock(pool) <= 0:
            raise OutOfStock(f"pool {pool} has no {self.pools[pool].instance_type} left")
        group = self.trouble.half_group.get(pool)
        if group is not None:
            self._count_in_group(group, pool)
        instance = self._new(self.pools[pool], node or self.next_name(pool), provisioned=True)
        if group is not None:
            self._half_groups[pool].append(instance)
        delay_s = self._timing.draw_s(self._timing.durations.launch, self._rng)
        delay_s *= self.trouble.boot_factor.get(pool, 1.0)
        if PlantedBug.INSTANCE_NEVER_BOOTS in self._bugs:
            return instance
        self._timers[instance.id] = _loop().call_later(delay_s, self._power_on, instance)
        return instance

    def adopt(self, node: str, pool: PoolConfig, provider_id: str) -> Instance:
        """A machine for a Node that is there already: it is on at once. Somebody else counts its stock."""
        if pool.name not in self.pools:
            self.pools[pool.name] = pool
            self._stock[pool.name] = 0
            self._numbers[pool.name] = 0
        self._stock[pool.name] += 1
        instance = self._new(pool, node, provisioned=True, named=provider_id)
        self._power_on(instance)
        return instance

    def terminate(self, id: str) -> None:
        """Idempotent."""
        instance = self.get(id)
        if instance.state is not InstanceState.TERMINATED:
            self._power_off(instance)

    def interrupt(self, id: str, notice_s: float) -> Instance:
        """The notice: the instance loses its power ``notice_s`` scenario seconds from now."""
        instance = self.get(id)
        if instance.pool.capacity_type != "spot":
            raise WrongState(f"{id} is {instance.pool.capacity_type}; only spot instances are interrupted")
        if instance.state is not InstanceState.RUNNING:
            raise WrongState(f"{id} is {instance.state}; only a running instance can be interrupted")
        if PlantedBug.INTERRUPTION_WITHOUT_EFFECT in self._bugs:
            return instance
        if PlantedBug.NOTICE_CUT_SHORT in self._bugs:
            notice_s = min(notice_s, SHORT_NOTICE_S)
        instance.state = InstanceState.INTERRUPTING
        instance.reclaimed = True
        instance.interrupt_at_s = _loop().time() + self._timing.clock_s(notice_s)
        self._timers[id] = _loop().call_at(instance.interrupt_at_s, self._power_off, instance)
        for listener in self.on_notice:
            listener(instance)
        return instance

    def recommend_rebalance(self, id: str) -> None:
        """A warning that the instance is at risk, without a date: Karpenter does nothing about it by default."""
        instance = self.get(id)
        for listener in self.on_rebalance:
            listener(instance)

    def power_off(self, id: str) -> None:
        """The cloud takes the instance away now, whatever it said before."""
        instance = self.get(id)
        if instance.state is not InstanceState.TERMINATED:
            instance.reclaimed = True
            self._power_off(instance)

    def cancel_interruption(self, id: str) -> None:
        """Idempotent. What others have begun because of the notice goes on: nobody sends a notice of cancellation."""
        instance = self.get(id)
        if instance.state is InstanceState.TERMINATED:
            raise WrongState(f"{id} is terminated already")
        if instance.state is InstanceState.INTERRUPTING:
            self._timers.pop(id).cancel()
            instance.state = InstanceState.RUNNING
            instance.interrupt_at_s = None
            instance.reclaimed = False

    def get(self, id: str) -> Instance:
        if id not in self.instances:
            raise UnknownInstance(f"no instance {id}; known: {', '.join(sorted(self.instances)) or 'none'}")
        return self.instances[id]

    def cost(self) -> float:
        """What all instances have cost since they were launched, at scenario hours."""
        total = 0.0
        for instance in self.instances.values():
            end_s = instance.terminated_s if instance.terminated_s is not None else _loop().time()
            total += (end_s - instance.launched_s) * self._timing.time_scale / 3600 * instance.pool.price_per_hour
        return total

    def _new(self, pool: PoolConfig, node: str, *, provisioned: bool, named: str = "") -> Instance:
        self._stock[pool.name] -= 1
        delivered = self.trouble.delivered(pool) if provisioned else pool
        machine = Machine(node, delivered, len(self.instances) + 1, provisioned, named)
        instance = Instance(machine, InstanceState.PENDING, _loop().time())
        self.instances[instance.id] = instance
        return instance

    def _power_on(self, instance: Instance) -> None:
        self._timers.pop(instance.id, None)
        instance.state = InstanceState.RUNNING
        if instance.pool.name in self.trouble.never_registers:
            return  # it runs, it costs, and its kubelet never finds the API server
        instance.booted_s = _loop().time()
        self._boot(instance)

    def _power_off(self, instance: Instance) -> None:
        if instance.state is InstanceState.TERMINATED:
            return  # a group's release after its instance was gone already
        if timer := self._timers.pop(instance.id, None):
            timer.cancel()
        instance.state = InstanceState.TERMINATED
        instance.terminated_s = _loop().time()
        if not instance.reclaimed:
            self._stock[instance.pool.name] += 1
        if instance.booted_s is not None:
            self._lost(instance)
        for listener in self.on_gone:
            listener(instance)

    def _existing(self, pool: str) -> int:
        return sum(i.pool.name == pool and i.state is not InstanceState.TERMINATED for i in self.instances.values())

    def _count_in_group(self, group: HalfGroup, pool: str) -> None:
        """Raises ``OutOfStock`` for the orders of a group that the cloud does not fill; the first of them dooms it."""
        members = self._half_groups.setdefault(pool, [])
        if len(members) < group.deliver:
            return
        release_s = self._timing.clock_s(group.release_after_s)
        for member in members:
            if member.state is not InstanceState.TERMINATED and member.id not in self._releases:
                self._releases[member.id] = _loop().call_later(release_s, self._power_off, member)
        raise OutOfStock(f"{group.deliver} of {group.of} instances of pool {pool} could be had; the group is released")


def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()
