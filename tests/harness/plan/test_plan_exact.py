"""Our ln and exp are right, and use nothing that may differ between machines."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest

from harness.plan import exact
from harness.plan.chance import Chance


@pytest.mark.parametrize("x", [5e-324, 1e-300, 0.1, 0.5, math.sqrt(0.5), 1 - 2**-53, 1.0, 1.5, math.e, 1e6, 1.7e308])
def test_ln(x: float) -> None:
    assert exact.ln(x) == pytest.approx(math.log(x), rel=1e-15, abs=1e-300)


@pytest.mark.parametrize("x", [-744.0, -100.5, -1.0, -1e-9, 0.0, 1e-9, 0.3466, 1.0, 20.25, 700.0])
def test_exp(x: float) -> None:
    assert exact.exp(x) == pytest.approx(math.exp(x), rel=1e-13)


@pytest.mark.parametrize("turns", [k / 48 for k in range(-60, 100)] + [1e-9, 1234.5678])
def test_cosine(turns: float) -> None:
    assert exact.cosine(turns) == pytest.approx(math.cos(2 * math.pi * turns), abs=1e-12)


@pytest.mark.parametrize("base, exponent", [(0.5, 0.125), (2.0, -1.1), (1e6, -0.4), (1.0, 7.0), (7.0, 0.0)])
def test_power(base: float, exponent: float) -> None:
    assert exact.power(base, exponent) == pytest.approx(base**exponent, rel=1e-13)


def test_edges() -> None:
    assert exact.exp(-1e6) == 0.0
    assert exact.exponential(0.0) == 0.0
    with pytest.raises(ValueError, match="ln of 0"):
        exact.ln(0.0)


def test_only_exact_functions_of_the_maths_library() -> None:
    """frexp, ldexp, floor and sqrt are fixed to the last bit; log, exp, pow, sin and their like are not."""
    allowed = {"frexp", "ldexp", "floor", "sqrt", "ceil"}
    constant = "2.0 ** (-53)"
    for module in ("exact", "chance", "intensity", "arrivals", "rates", "tokens", "mix", "make", "replay", "trace"):
        tree = ast.parse((Path(exact.__file__).parent / f"{module}.py").read_text())
        calls = [
            node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        ]
        used = {call.attr for call in calls if isinstance(call.value, ast.Name) and call.value.id == "math"}
        assert used <= allowed, module
        powers = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)]
        assert {ast.unparse(power) for power in powers} <= {constant}, module


def test_no_sum_whose_rounding_depends_on_the_version_of_python() -> None:
    for module in ("chance", "intensity", "arrivals", "rates", "tokens"):
        tree = ast.parse((Path(exact.__file__).parent / f"{module}.py").read_text())
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert not names & {"sum", "fsum"}, module
    assert exact.total([0.1] * 10) == 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 0.1


def test_streams_are_apart() -> None:
    def first(seed: int, stream: str) -> list[float]:
        chance = Chance(seed, stream)
        return [chance.uniform() for _ in range(50)]

    streams = [first(seed, stream) for seed in (0, 1) for stream in ("arrivals", "arrivals.0", "prompt_tokens")]
    assert len({tuple(numbers) for numbers in streams}) == 6
    assert first(1, "arrivals") == streams[3]


@pytest.mark.parametrize("shape", [0.006, 0.2, 1.0, 4.0, 100.0])
def test_gamma_has_its_mean_and_variance(shape: float) -> None:
    chance = Chance(5, "gamma")
    draws = [chance.gamma(shape) for _ in range(20_000)]
    mean = sum(draws) / len(draws)
    variance = sum((x - mean) ** 2 for x in draws) / len(draws)
    # Six standard errors: the variance of a sample variance of a gamma is (6/shape + 2)·shape²/n.
    assert mean == pytest.approx(shape, abs=6 * math.sqrt(shape / len(draws)))
    assert variance == pytest.approx(shape, abs=6 * shape * math.sqrt((6 / shape + 2) / len(draws)))


def test_normal() -> None:
    chance = Chance(1, "normal")
    draws = [chance.normal() for _ in range(20_000)]
    assert abs(sum(draws) / len(draws)) < 6 / math.sqrt(20_000)
    assert sum(x * x for x in draws) / len(draws) == pytest.approx(1, abs=6 * math.sqrt(2 / 20_000))
    assert sum(abs(x) < 1 for x in draws) / len(draws) == pytest.approx(0.6827, abs=0.02)
