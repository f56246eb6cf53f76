"""What can be wrong with a cloud: limits, errors and delays, by pool or zone. Everything is fine by default."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fakes.config import PoolConfig


class CloudError(Exception):
    """A call that the cloud refuses."""


class OutOfStock(CloudError):
    """There is no instance to give, now (a cloud's InsufficientInstanceCapacity)."""


class QuotaExceeded(OutOfStock):
    """The account may have no more of them (VcpuLimitExceeded, which Karpenter treats as a lack of capacity)."""


class LaunchFailed(CloudError):
    """An error of the cloud's own."""


class Throttled(CloudError):
    """Too many calls (RequestLimitExceeded)."""


@dataclass(frozen=True, slots=True)
class HalfGroup:
    """Of the next ``of`` orders the first ``deliver`` are filled, the others refused; then the cloud takes all of them
    back, ``release_after_s`` scenario seconds after the first refusal."""

    of: int
    deliver: int
    release_after_s: float


@dataclass(slots=True)
class Trouble:
    stock_left: dict[str, int] = field(default_factory=dict)
    """By pool: no more than so many can be had from now on."""
    quota: dict[str, int] = field(default_factory=dict)
    """By pool: no more than so many may exist at once."""
    zones_out: set[str] = field(default_factory=set)
    launch_error: dict[str, str] = field(default_factory=dict)
    throttled: bool = False
    never_registers: set[str] = field(default_factory=set)
    boot_factor: dict[str, float] = field(default_factory=dict)
    gpu_product: dict[str, str] = field(default_factory=dict)
    half_group: dict[str, HalfGroup] = field(default_factory=dict)

    def check_launch(self, pool: PoolConfig, existing: int) -> None:
        """Raises the ``CloudError`` with which an order of one more instance is answered."""
        if self.throttled:
            raise Throttled("RequestLimitExceeded: request limit exceeded")
        if why := self.launch_error.get(pool.name):
            raise LaunchFailed(why)
        if pool.zone in self.zones_out:
            raise OutOfStock(f"InsufficientInstanceCapacity: zone {pool.zone} has no {pool.instance_type} left")
        if existing >= self.quota.get(pool.name, existing + 1):
            limit = self.quota[pool.name]
            raise QuotaExceeded(f"VcpuLimitExceeded: {existing} of pool {pool.name} exist, the limit is {limit}")

    def left(self, pool: str, stock: int) -> int:
        return min(stock, self.stock_left.get(pool, stock))

    def delivered(self, pool: PoolConfig) -> PoolConfig:
        """What an order really brings."""
        product = self.gpu_product.get(pool.name)
        return pool if product is None else replace(pool, gpu_product=product)
