"""The GPUs of one node, as the device plugin gives them to the kubelet."""

from __future__ import annotations


class TooFewDevices(Exception):
    """The message is the kubelet's own."""

    def __init__(self, resource: str, requested: int, available: int) -> None:
        super().__init__(
            f"Allocate failed due to requested number of devices unavailable for {resource}. "
            f"Requested: {requested}, Available: {available}, which is unexpected"
        )


class Devices:
    """No plugin, no key in the node's status. A pod holds its devices until its containers have ended."""

    def __init__(self, resource: str, ids: tuple[str, ...]) -> None:
        self.resource = resource
        self._ids = ids
        self._holders: dict[str, str] = {}
        self.registered = False

    @property
    def count(self) -> int:
        return len(self._ids)

    def allocate(self, holder: str, count: int) -> tuple[str, ...]:
        """Raises ``TooFewDevices``; then nothing is held."""
        free = [id for id in self._ids if id not in self._holders] if self.registered else []
        if count > len(free):
            raise TooFewDevices(self.resource, count, len(free))
        for id in free[:count]:
            self._holders[id] = holder
        return tuple(free[:count])

    def release(self, holder: str) -> None:
        self._holders = {id: h for id, h in self._holders.items() if h != holder}
