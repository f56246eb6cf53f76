"""Which knobs and verbs a world has. What they turn lives in the parts themselves; here are only names and shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, MutableMapping, MutableSet
from typing import TypeVar

from fakes.cloud.cloud import Cloud
from fakes.cloud.trouble import HalfGroup
from fakes.control.control import Control
from fakes.control.door import HOW, Doors, Errors
from fakes.control.knobs import (
    NEVER,
    Apply,
    BadValue,
    Value,
    flag,
    number,
    one_of,
    seconds_or_never,
    shape,
    text,
    whole,
)
from fakes.control.pods import PodTrouble
from fakes.gateway.gateway import Gateway
from fakes.gateway.links import CLIENTS, PODS, Quality
from fakes.metrics.custom_metrics import CustomMetrics
from fakes.metrics.scraper import Scraper
from fakes.nodes.images import Registry
from fakes.nodes.kubelet import Kubelet
from fakes.timing import Timing
from harness.kube.port import Json

V = TypeVar("V")
SHORT_OF = {"memory": "MemoryPressure", "disk": "DiskPressure"}
Kubelets = Mapping[str, Kubelet]


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


def wire_nodes(control: Control, kubelets: Kubelets, pods: PodTrouble, gateway: Gateway) -> None:
    """``node.kubelet``: silent (its network to the API server is cut, or its process is stopped) or frozen, which is
    the whole machine: its pods and their connections stand still, too. ``node.pressure``: what it is short of.
    ``node.condition``: what an agent on it reports; turned back, it reports that this is over."""

    def kubelet(node: str, value: Value) -> None:
        kubelets[node].release()
        pods.freeze(node, value == "frozen")
        if value is not None:
            kubelets[node].hold(frozen=value == "frozen")

    def nodes() -> list[str]:
        return list(kubelets)

    def pressure(node: str, value: Value) -> None:
        for resource, condition in SHORT_OF.items():
            kubelets[node].pressure(condition, resource == value)

    found: dict[str, tuple[str, str]] = {}

    def condition(node: str, value: Value) -> None:
        if value is not None:
            found[node] = (value["type"], value["status"])
            kubelets[node].find(*found[node])
        elif node in found:
            kind, status = found.pop(node)
            kubelets[node].find(kind, "False" if status == "True" else "True")

    control.knobs.add("node.condition", nodes, shape(type=text, status=one_of("True", "False")), condition)
    control.knobs.add("node.kubelet", nodes, one_of("silent", "frozen"), kubelet)
    control.knobs.add("node.pressure", nodes, one_of(*SHORT_OF), pressure)
    control.add_verb("restart_kubelet", nodes, lambda node, _: kubelets[node].restart())
    _wire_devices(control, kubelets)
    wire_links(control, gateway, nodes)


def wire_links(control: Control, gateway: Gateway, nodes: Callable[[], Collection[str]]) -> None:
    """The gateway's connections: to clients, to all pods, to the pods of one node."""

    def links() -> list[str]:
        return [CLIENTS, PODS, *(f"node/{name}" for name in nodes())]

    quality = shape(latency_ms=number(), loss_ratio=number(0, 1), reset_ratio=number(0, 1))
    control.knobs.add(
        "net.link", links, quality, lambda link, v: gateway.links.set(link, None if v is None else Quality(**v))
    )


def _wire_devices(control: Control, kubelets: Kubelets) -> None:
    def nodes() -> list[str]:
        return list(kubelets)

    def plugin(node: str, value: Value) -> None:
        (kubelets[node].plugin.start if value is None else kubelets[node].plugin.crash)()

    def error(node: str, value: Value) -> None:
        kubelets[node].plugin.allocate_error = value

    def slow(node: str, value: Value) -> None:
        kubelets[node].plugin.allocate_s = 0.0 if value is None else float(value)

    def unhealthy(node: str, value: Value) -> None:
        for index, id in enumerate(kubelets[node].plugin.ids):
            kubelets[node].plugin.set_health(id, index >= (value or 0))

    def count(node: str, value: Value) -> None:
        machine = kubelets[node].machine
        wanted = machine.pool.gpus if value is None else int(value)
        kubelets[node].plugin.set_devices(f"GPU-{machine.name}-{n}" for n in range(wanted))

    def deaf(node: str, value: Value) -> None:
        kubelets[node].plugin.registers_again = value is None
        if value is None:
            kubelets[node].plugin.kubelet_restarted()

    def stale(node: str, value: Value) -> None:
        kubelets[node].leak_devices(int(value or 0))

    control.knobs.add("device.plugin", nodes, one_of("down"), plugin)
    control.knobs.add("device.allocate_error", nodes, text, error)
    control.knobs.add("device.allocate_s", nodes, number(), slow)
    control.knobs.add("device.unhealthy", nodes, whole(), unhealthy)
    control.knobs.add("device.count", nodes, whole(), count)
    control.knobs.add("device.plugin_deaf", nodes, flag, deaf)
    control.knobs.add("device.stale", nodes, whole(), stale)


def wire_pools(control: Control, cloud: Cloud, kubelets: Kubelets, late: MutableMapping[str, float]) -> None:
    """``late``: by how much later than usual the device plugin starts on machines that boot from now on, by pool."""

    def plugin_late(pool: str, value: Value) -> None:
        if value is not None:
            late[pool] = math.inf if value == NEVER else float(value)
            return
        late.pop(pool, None)
        for kubelet in kubelets.values():
            if kubelet.machine.pool.name == pool and kubelet.plugin.late_s:
                kubelet.plugin.late_s = 0.0
                kubelet.plugin.start()

    control.knobs.add("device.plugin_late", lambda: list(cloud.pools), seconds_or_never, plugin_late)


def wire_pods(control: Control, kubelets: Kubelets, pods: PodTrouble, registry: Registry) -> None:
    def running() -> list[str]:
        return list(pods.servers)

    def crash(pod: str, value: Value) -> None:
        if value is None:
            pods.crashing.discard(pod)
        else:
            pods.crash(pod)

    def oom_kill(pod: str, arguments: Json) -> None:
        namespace, _, name = pod.partition("/")
        try:
            kubelets[pods.servers[pod].node].oom_kill(namespace, name, str(arguments.get("container", "")))
        except (KeyError, StopIteration) as error:
            raise BadValue(f"{pod} has no such container that runs: {error}") from error

    def image(name: str, value: Value) -> None:
        if value is None:
            registry.heal(name)
        else:
            registry.fail(name, value)

    def slow_pulls(target: str, value: Value) -> None:
        registry.slow_by = 1.0 if value is None else float(value)

    def load(target: str, value: Value) -> None:
        pods.load_factor = 1.0 if value is None else float(value)

    control.knobs.add("pod.unready", running, flag, _member(pods.unready))
    trouble = one_of("error", "frozen")
    control.knobs.add("pod.metrics", lambda: pods.with_metrics | {*pods.metrics_fail}, trouble, pods.fail_metrics)
    control.knobs.add("pod.crash", lambda: {*pods.servers, *pods.crashing}, flag, crash)
    control.add_verb("oom_kill", running, oom_kill)
    control.knobs.add("registry.fail", lambda: ["*"], text, image)
    control.knobs.add("registry.slow_by", lambda: ["registry"], number(1), slow_pulls)
    control.knobs.add("model.load_factor", lambda: ["model"], number(1), load)


def wire_traffic(control: Control, gateway: Gateway, scraper: Scraper, metrics: CustomMetrics, timing: Timing) -> None:
    """The gateway, and what stands between a model server's /metrics and the autoscaler."""

    def late(target: str, value: Value) -> None:
        gateway.endpoints_late_s = 0.0 if value is None else timing.clock_s(float(value))

    def pipeline(target: str, value: Value) -> None:
        scraper.blank = value == "blank"
        scraper.stands_still = value == "stale"
        metrics.empty_is_zero = value == "zero"

    def restart(target: str, arguments: Json) -> None:
        down_s = arguments.get("down_s", 0)
        if wrong := number()(down_s):
            raise BadValue(f"down_s {wrong}, got {down_s!r}")
        gateway.restart(timing.clock_s(float(down_s)))

    control.knobs.add("gateway.endpoints_late_s", lambda: ["gateway"], number(), late)
    control.add_verb("restart_gateway", lambda: ["gateway"], restart)
    control.knobs.add("metrics.pipeline", lambda: ["pipeline"], one_of("blank", "stale", "zero"), pipeline)


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

    control.watches_begun = doors.watches_begun
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
