"""A plugin and the kubelet's side of it, in one process, over real sockets."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from kubelet_side import KubeletSide, Running


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short: the path of a unix socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="dp-") as made:
        yield Path(made)


@pytest.fixture
async def kubelet(folder: Path) -> AsyncIterator[KubeletSide]:
    side = KubeletSide(folder)
    await side.start()
    yield side
    await side.stop()


@pytest.fixture
def running(folder: Path) -> Running:
    return Running(folder, "nvidia.com/gpu=4")
