"""Which knobs and verbs a world has. What they turn lives in the parts themselves; here are only names and shapes."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, MutableSet
from typing import TypeVar

from fakes.cloud.cloud import Cloud
from fakes.cloud.trouble import HalfGroup
from fakes.control.control import Control
from fakes.control.door import HOW, Doors, Errors
from fakes.control.knobs import Apply, Value, flag, number, one_of, shape, text, whole

V = TypeVar("V")


def wire_cloud(control: Control, cloud: Cloud) -> None:
    trouble, knobs = cloud.trouble, control.knobs

    def pools() -> list[str]:
        return list(cloud.pools)

    def zones() -> set[str]:
        return {pool.zone for pool in cloud.pools.values()}

    def throttle(target: str, value: Value) -> None:
        trouble.throttled = value is not None

    knobs.add("cloud.stock", pools, whole(), _entry(trouble.stock_left, int))
    knobs.add("cloud.quota", pools, whole(), _entry(trouble.quota, int))
    knobs.add("cloud.zone_out", zones, flag, _member(trouble.zones_out))
    knobs.add("cloud.launch_error", pools, text, _entry(trouble.launch_error, str))
    knobs.add("cloud.throttled", lambda: ["cloud"], flag, throttle)
    knobs.add("cloud.never_registers", pools, flag, _member(trouble.never_registers))
    knobs.add("cloud.boot_factor", pools, number(0.01, 1000), _entry(trouble.boot_factor, float))
    knobs.add("cloud.gpu_product", pools, text, _entry(trouble.gpu_product, str))
    group = shape(of=whole(1), deliver=whole(), release_after_s=number())
    knobs.add("cloud.half_group", pools, group, _entry(trouble.half_group, lambda v: HalfGroup(**v)))
    control.add_verb("rebalance", lambda: cloud.instances, lambda id, _: cloud.recommend_rebalance(id))
    control.add_verb("power_off", lambda: cloud.instances, lambda id, _: cloud.power_off(id))


def wire_doors(control: Control, doors: Doors) -> None:
    """The clients of the API server. Whoever watches to judge goes through no door and is no target."""
    clients = doors.names

    def errors(target: str, value: Value) -> None:
        doors.of(target).errors = None if value is None else Errors(**value)

    def stopped(target: str, value: Value) -> None:
        if value is None:
            doors.of(target).go_on()
        else:
            doors.of(target).stop()

    def webhook(target: str, value: Value) -> None:
        for name in clients():
            doors.of(name).webhook_down = value is not None

    shape_of_errors = shape(how=one_of(*HOW), ratio=number(0, 1), delay_s=number())
    control.knobs.add("api.errors", clients, shape_of_errors, errors)
    control.knobs.add("api.stopped", clients, flag, stopped)
    control.knobs.add("api.webhook_down", lambda: ["api"], flag, webhook)
    control.add_verb("cut_watches", clients, lambda name, a: doors.of(name).cut_watches(gone=bool(a.get("gone"))))


def _entry(values: MutableMapping[str, V], read: Callable[[Value], V]) -> Apply:
    def apply(target: str, value: Value) -> None:
        if value is None:
            values.pop(target, None)
        else:
            values[target] = read(value)

    return apply


def _member(values: MutableSet[str]) -> Apply:
    def apply(target: str, value: Value) -> None:
        if value is None:
            values.discard(target)
        else:
            values.add(target)

    return apply
