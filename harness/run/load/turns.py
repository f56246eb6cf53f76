"""A session's turns go one after another; a turn waits for nobody."""

from __future__ import annotations


class Turns:
    """Where the turn before has not ended when the next is due, or was never sent, the session is broken: that turn and
    all after it are not sent."""

    def __init__(self) -> None:
        self._talking: set[str] = set()
        self._broken: set[str] = set()

    def begin(self, session: str) -> bool:
        """Whether the turn may be sent now. A request of no session always may."""
        if not session:
            return True
        if session in self._talking or session in self._broken:
            self._broken.add(session)
            return False
        self._talking.add(session)
        return True

    def end(self, session: str) -> None:
        self._talking.discard(session)
