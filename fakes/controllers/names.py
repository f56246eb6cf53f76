"""Names and hashes in Kubernetes' alphabet: no vowels, so that chance spells no words."""

from __future__ import annotations

import json
import zlib
from random import Random
from typing import Any

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def suffix(rng: Random) -> str:
    """What the API server appends to a generateName."""
    return "".join(rng.choice(ALPHABET) for _ in range(5))


def stable_hash(value: Any) -> str:
    """The same JSON gives the same eight to ten letters, whatever the order of its keys."""
    number = zlib.crc32(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(number))
