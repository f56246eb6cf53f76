from __future__ import annotations

import asyncio

import pytest

from harness.faults.wait import TookTooLong, until
from harness.kube.port import ApiError, Invalid

pytestmark = pytest.mark.looptime


def looks(*answers: object):  # type: ignore[no-untyped-def]  # a scripted look: an error is raised, all else returned
    left = list(answers)

    async def look() -> object:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return look


async def test_the_first_answer_that_is_not_none_is_it() -> None:
    assert await until(looks(None, None, "seen", "later"), 10, 1) == "seen"
    assert asyncio.get_running_loop().time() == 2


async def test_a_fact_that_never_comes_ends_at_the_deadline() -> None:
    with pytest.raises(TookTooLong, match=r"not within 10\.0 s$"):
        await until(looks(None), 10, 3)
    assert asyncio.get_running_loop().time() == 10


@pytest.mark.parametrize(
    "error", [ConnectionError("refused"), TimeoutError(), ApiError(503, "", ""), ApiError(429, "", "")]
)
async def test_a_server_that_is_hard_to_reach_is_asked_again(error: Exception) -> None:
    assert await until(looks(error, error, "seen"), 10, 1) == "seen"


async def test_the_last_failed_look_is_named() -> None:
    with pytest.raises(TookTooLong, match="last look: refused"):
        await until(looks(ConnectionError("refused")), 5, 1)


async def test_an_answer_that_will_not_change_ends_the_wait() -> None:
    with pytest.raises(Invalid):
        await until(looks(Invalid(422, "Invalid", "no")), 10, 1)


async def test_a_look_that_hangs_ends_at_the_deadline() -> None:
    async def look() -> None:
        await asyncio.sleep(1000)

    with pytest.raises(TookTooLong, match="no answer"):
        await until(look, 10, 1)
    assert asyncio.get_running_loop().time() == 10


async def test_a_last_look_that_is_cut_short_does_not_hide_that_earlier_ones_were_answered() -> None:
    looked = 0

    async def look() -> None:
        nonlocal looked
        looked += 1
        await asyncio.sleep(0 if looked < 4 else 1000)

    with pytest.raises(TookTooLong) as raised:
        await until(look, 10, 1)
    assert (str(raised.value), looked) == ("not within 10.0 s", 4)
