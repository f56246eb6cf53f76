"""Where the clients of a model server come in: over HTTP, or by calls within the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fakes.vllm.completions import Completions

Address = tuple[str, int]


class Door(Protocol):
    """Reserved by ``bind``, shut until ``open``; what comes before is refused, as by a port that nobody listens on."""

    def bind(self, host: str, port: int) -> Address: ...

    async def open(self) -> bool:
        """False when it was shut meanwhile."""
        ...

    def shut(self) -> None:
        """New connections are refused, idle ones end; those that carry a request stay."""
        ...

    def cut(self) -> None:
        """The process is gone: connections break in the middle of whatever they carry. Follows ``shut``."""
        ...


MakeDoor = Callable[[Completions], Door]
