"""Patience ends with the last thing that was wrong, a server that refuses among them, or with who would mend it."""

from __future__ import annotations

import asyncio

import pytest

from harness.errors import TargetError
from harness.kube.port import ApiError
from harness.stack.patience import unless, until_nothing_is_wrong

pytestmark = pytest.mark.looptime


async def test_a_server_that_refuses_or_is_not_reached_is_asked_again() -> None:
    answers: list[str | Exception] = [ApiError(503, "ServiceUnavailable", "soon"), ConnectionError(), "two to go", ""]

    async def look() -> str:
        said = answers.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    await until_nothing_is_wrong(look, "it did not come up")
    assert answers == []


@pytest.mark.parametrize(
    ("wrong", "words"), [("two to go", "two to go"), (ConnectionError(), "ConnectionError")], ids=["words", "an error"]
)
async def test_what_was_wrong_last_is_said(wrong: str | Exception, words: str) -> None:
    async def look() -> str:
        if isinstance(wrong, Exception):
            raise wrong
        return wrong

    with pytest.raises(TargetError, match=f"^it did not come up within 2 s: {words}$"):
        await until_nothing_is_wrong(look, "it did not come up", 2, 0.5)


async def test_work_is_waited_for_while_those_who_do_it_live() -> None:
    async def work() -> str:
        await asyncio.sleep(5)
        return "done"

    assert await unless(lambda: None, work()) == "done"


async def test_work_ends_with_those_who_do_it() -> None:
    loop, ended = asyncio.get_running_loop(), []

    def check() -> None:
        if loop.time() - began_s > 3:
            raise TargetError("the API server exited with code 1")

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(loop.time() - began_s)

    began_s = loop.time()
    with pytest.raises(TargetError, match="exited with code 1"):
        await unless(check, work())
    assert ended == [pytest.approx(3, abs=0.2)]
