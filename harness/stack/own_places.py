"""A program that insists on a folder at a fixed place gets a view of the file system of its own.

Two of its kind on one machine would write into each other's files there otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_MOUNTS = 'while [ "$1" != -- ]; do mkdir -p "$1" && mount --bind "$2" "$1" || exit 1; shift 2; done; shift; exec "$@"'


def in_its_own_view(argv: tuple[str, ...], places: Mapping[str, str]) -> tuple[str, ...]:
    """``places``: what it finds where. The place itself is made, empty, where it is not there."""
    if not places:
        return argv
    root = () if os.geteuid() == 0 else ("--map-root-user",)
    pairs = tuple(word for pair in places.items() for word in pair)
    return ("unshare", *root, "--mount", "--", "sh", "-c", _MOUNTS, "sh", *pairs, "--", *argv)
