"""What the recorder could see, and until when: for checks that rely on something not being there."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from harness.history.tables import ObjectEvent

if TYPE_CHECKING:
    from harness.history.reader import History


def blind(history: History, kinds: Collection[str], start_ns: int = 0, end_ns: int | None = None) -> ObjectEvent | None:
    """The first gap of one of ``kinds`` that touches the span; without an end, until the recording's."""
    return next(
        (
            gap
            for gap in history.gaps
            if gap.kind in kinds and gap.t_ns >= start_ns and (end_ns is None or (gap.since_ns or 0) <= end_ns)
        ),
        None,
    )
