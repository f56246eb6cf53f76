"""What may befall the records of a run: bugs of the harness itself, which no fake can have.

Each takes the folder of a run that has ended and leaves what the load would have written. The history is sealed over
it, for no checksum knows what was never written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from harness.history.seal import seal
from harness.history.tables import REQUESTS_FILE

Mishap = Callable[[Path], None]
_SHARE = 20


def records_lost(run: Path) -> None:
    """A worker of the load dies with what it had not written: one row in twenty."""
    _write(run, lambda table: table.drop(table.index[::_SHARE]))


def records_written_twice(run: Path) -> None:
    """What was flushed before a restart is flushed again."""
    _write(run, lambda table: pd.concat([table, table.iloc[::_SHARE]]))


def _write(run: Path, edit: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    history = run / "history"
    edit(pd.read_parquet(history / REQUESTS_FILE)).to_parquet(history / REQUESTS_FILE, index=False)
    seal(history)
