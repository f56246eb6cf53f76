"""Seeded chance, one independent stream per purpose.

Only the raw numbers of PCG64 are used: numpy keeps the stream of a bit generator the same for good, while the methods
of ``Generator`` may change between its versions.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from random import Random

import numpy as np

from harness.plan.exact import exp, exponential, ln

_BLOCK = 1024


class Chance:
    """A stream of uniform numbers in [0, 1), named so that no two purposes of one seed share it."""

    def __init__(self, seed: int, stream: str) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence([seed, zlib.crc32(stream.encode())]))
        self._numbers = self._endless()

    def _endless(self) -> Iterator[float]:
        while True:
            # The upper 53 bits, as many as a fraction has: what Generator.random() returns today.
            yield from ((self._bits.random_raw(_BLOCK) >> np.uint64(11)) * 2.0**-53).tolist()

    def uniform(self) -> float:
        return next(self._numbers)

    def exponential(self) -> float:
        """Mean 1."""
        return exponential(self.uniform())

    def normal(self) -> float:
        """Marsaglia's polar method; the second number of each pair is dropped for the sake of a simple stream."""
        while True:
            x = 2.0 * self.uniform() - 1.0
            y = 2.0 * self.uniform() - 1.0
            s = x * x + y * y
            if 0.0 < s < 1.0:
                return float(x * np.sqrt(-2.0 * ln(s) / s))

    def gamma(self, shape: float) -> float:
        """Mean ``shape``: Ahrens and Dieter's GS below 1, Marsaglia and Tsang from 1 on."""
        return self._gamma_small(shape) if shape < 1.0 else self._gamma_large(shape)

    def _gamma_small(self, shape: float) -> float:
        e = 2.718281828459045
        b = (e + shape) / e
        while True:
            p = b * self.uniform()
            accept = self.uniform()
            if p <= 1.0:
                x = exp(ln(p) / shape) if p > 0.0 else 0.0
                if accept <= exp(-x):
                    return x
            else:
                x = -ln((b - p) / shape)
                if accept <= exp((shape - 1.0) * ln(x)):
                    return x

    def _gamma_large(self, shape: float) -> float:
        d = shape - 1.0 / 3.0
        c = 1.0 / float(np.sqrt(9.0 * d))
        while True:
            x = self.normal()
            v = 1.0 + c * x
            if v <= 0.0:
                continue
            v = v * v * v
            u = 1.0 - self.uniform()
            if ln(u) < 0.5 * x * x + d - d * v + d * ln(v):
                return d * v


def target_random(seed: int, fault_id: str) -> Random:
    """Chance for picking a fault's targets."""
    return Random(f"{seed}:{fault_id}")
