"""When a pod last gave anybody a token: by that a server that hangs is told from one that is only busy."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from harness.checks.rows import Numbers, Rows
from harness.checks.units import NS_PER_S

_SILENCE_NS = 2 * NS_PER_S


class Activity:
    """When each pod last gave anybody a token, up to any moment."""

    def __init__(self, table: Rows) -> None:
        first, last = table.numbers("first_token_ns"), table.numbers("last_token_ns")
        self._spans: dict[str, tuple[list[int], list[int]]] = {}
        whole = ~np.isnan(first) & ~np.isnan(last)
        self.first_patience_ns = _patience(first - table.numbers("sent_ns"))
        """A first token that takes longer than this is no first token that is still to come."""
        self.patience_ns = _patience(table.numbers("gap_max_ns"))
        """The same between two tokens."""
        self._begun, self._ended = np.sort(first[whole]), np.sort(last[whole])
        for pod, places in table.places("pod").items():
            own = places[~np.isnan(first[places]) & ~np.isnan(last[places])]
            own = own[np.argsort(first[own], kind="stable")]
            if len(own):
                until = np.maximum.accumulate(last[own])
                self._spans[pod] = (first[own].astype(np.int64).tolist(), until.astype(np.int64).tolist())

    def first_token_ns(self, pod: str, since_ns: int = 0) -> int | None:
        """The first that it gave since then."""
        starts, _ = self._spans.get(pod, ([], []))
        known = bisect_left(starts, since_ns)
        return starts[known] if known < len(starts) else None

    def last_token_ns(self, pod: str, t_ns: int) -> int | None:
        """Streams in flight are taken to have given tokens between their first and their last."""
        starts, until = self._spans.get(pod, ([], []))
        known = bisect_right(starts, t_ns)
        return min(until[known - 1], t_ns) if known else None

    def in_flight(self, t_ns: int) -> int:
        """Answers of all pods that had begun and were not over."""
        begun = int(np.searchsorted(self._begun, t_ns, side="right"))
        return begun - int(np.searchsorted(self._ended, t_ns, side="right"))


def _patience(spans: Numbers) -> int:
    """Twice what nearly all answers of the run needed, and two clock seconds at least."""
    known = spans[~np.isnan(spans)]
    return max(_SILENCE_NS, round(2 * float(np.quantile(known, 0.98)))) if len(known) else _SILENCE_NS
