from __future__ import annotations

import pytest

from fakes.control.knobs import BadValue, Knobs, UnknownName, Value, flag, number, one_of, shape, whole


def knobs(turned: list[tuple[str, Value]], targets: list[str]) -> Knobs:
    made = Knobs()
    made.add("n", lambda: targets, whole(1), lambda target, value: turned.append((target, value)))
    return made


async def test_a_knob_is_turned_and_turned_back_once() -> None:
    turned: list[tuple[str, Value]] = []
    made = knobs(turned, ["a"])
    await made.turn("n", "a", 3)
    assert (made.value("n", "a"), dict(made.turned())) == (3, {("n", "a"): 3})
    await made.turn("n", "a", None)
    await made.turn("n", "a", None)
    assert (turned, made.value("n", "a")) == ([("a", 3), ("a", None)], None)


async def test_what_is_gone_needs_nothing_turned_back() -> None:
    turned: list[tuple[str, Value]] = []
    targets = ["a"]
    made = knobs(turned, targets)
    await made.turn("n", "a", 3)
    targets.clear()
    await made.turn("n", "a", None)
    assert turned == [("a", 3)]


async def test_unknown_names_and_wrong_values_are_refused_with_what_would_be_right() -> None:
    made = knobs([], ["a"])
    with pytest.raises(UnknownName, match="no knob m; there are: n"):
        await made.turn("m", "a", 1)
    with pytest.raises(UnknownName, match="no target b; there are: a"):
        await made.turn("n", "b", 1)
    for value in (0, True, "1", 1.5):
        with pytest.raises(BadValue, match="a whole number, 1 or more"):
            await made.turn("n", "a", value)
    assert made.turned() == {}


@pytest.mark.parametrize("value", [{}, {"how": "429"}, {"how": "x", "ratio": 1}, {"how": "429", "ratio": 2}, [], True])
def test_shapes_have_exactly_their_keys(value: Value) -> None:
    check = shape(how=one_of("429"), ratio=number(0, 1))
    assert check(value) is not None and check({"how": "429", "ratio": 0.5}) is None
    assert flag(False) is not None
