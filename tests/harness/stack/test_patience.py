"""Patience ends with the last thing that was wrong, an API server that refuses among them."""

from __future__ import annotations

import pytest

from harness.errors import TargetError
from harness.kube.port import ApiError
from harness.stack.patience import until_nothing_is_wrong

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
