"""One machine that a kubelet runs on, as its cloud describes it."""

from __future__ import annotations

from dataclasses import dataclass

from fakes.config import PoolConfig
from fakes.nodes.labels import provider_id

KUBELET_PORT = 10250


@dataclass(frozen=True, slots=True)
class Machine:
    """``index`` is unique in a world and gives the node its address range."""

    name: str
    pool: PoolConfig
    index: int
    provisioned: bool
    """False for a machine that was there at the start: its node begins Ready, with its GPUs."""
    named: str = ""
    """The providerID that somebody else's provisioner gave it, along with its Node."""
    listens: tuple[str, int] | None = None
    """Where its kubelet really listens, for who asks it; else nowhere."""

    @property
    def provider_id(self) -> str:
        return self.named or provider_id(self.pool, self.name)

    @property
    def address(self) -> str:
        if self.listens is not None:
            return self.listens[0]
        return f"10.0.{self.index // 250}.{10 + self.index % 250}"

    @property
    def port(self) -> int:
        return self.listens[1] if self.listens is not None else KUBELET_PORT

    def pod_address(self, number: int) -> str:
        """Pod addresses count up from .2, as ``host-local`` hands them out, and come round after 250."""
        return f"10.{244 + self.index // 256}.{self.index % 256}.{2 + number % 250}"
