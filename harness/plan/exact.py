"""ln, exp, powers and cosines from additions, multiplications and divisions alone.

IEEE 754 fixes the result of those to the last bit, while the ``log`` of a C library or of numpy's vector units may
differ in it from one machine to the next. A schedule is promised byte for byte, so its arithmetic stands on the fixed
ones only. Accurate to a few units in the last place, which is more than chance needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

_LN2 = 0.6931471805599453
_SQRT_HALF = 0.7071067811865476
_TURN = 6.283185307179586


def total(numbers: Iterable[float]) -> float:
    """One number after another. The built-in ``sum`` corrects its rounding from Python 3.12 on, and did not before."""
    result = 0.0
    for number in numbers:
        result += number
    return result


def ln(x: float) -> float:
    """Natural logarithm of a positive number: x = m·2^e, and ln m by the series of artanh, with |s| ≤ 0.172."""
    if x <= 0.0:
        raise ValueError(f"ln of {x}")
    mantissa, exponent = math.frexp(x)
    if mantissa < _SQRT_HALF:
        mantissa, exponent = mantissa * 2.0, exponent - 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    series = 0.0
    for odd in range(23, 0, -2):
        series = series * square + 1.0 / odd
    return exponent * _LN2 + 2.0 * s * series


def exp(x: float) -> float:
    """e to the x: x = k·ln 2 + r, and e^r by its Taylor series, with |r| ≤ 0.35. Underflows to 0, as it should."""
    if x < -745.0:
        return 0.0
    k = math.floor(x / _LN2 + 0.5)
    rest = x - k * _LN2
    series = 1.0
    for n in range(18, 0, -1):
        series = 1.0 + series * rest / n
    return math.ldexp(series, k)


def exponential(u: float) -> float:
    """The quantile function of the unit exponential, for u in [0, 1)."""
    return -ln(1.0 - u)


def power(base: float, exponent: float) -> float:
    """A positive base to any exponent."""
    return exp(exponent * ln(base))


def cosine(turns: float) -> float:
    """The cosine of an angle in whole turns: folded into an eighth of one, then by its Taylor series."""
    folded = abs(turns - math.floor(turns + 0.5))  # 0 to 1/2, and the cosine is even
    sign = 1.0
    if folded > 0.25:
        folded, sign = 0.5 - folded, -1.0
    if folded > 0.125:
        return sign * _sine_series((0.25 - folded) * _TURN)
    return sign * _cosine_series(folded * _TURN)


def _cosine_series(x: float) -> float:
    square, series = x * x, 1.0
    for n in range(20, 0, -2):
        series = 1.0 - series * square / (n * (n - 1))
    return series


def _sine_series(x: float) -> float:
    square, series = x * x, 1.0
    for n in range(21, 1, -2):
        series = 1.0 - series * square / (n * (n - 1))
    return x * series
