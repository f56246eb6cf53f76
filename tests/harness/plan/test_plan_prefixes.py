from __future__ import annotations

import pytest

from harness.plan.prefixes import BlockNames, cut_to, drop_unshared, join, shared_tokens, split


def test_there_and_back() -> None:
    segments = [("p0.3", 512), ("s12", 7)]
    assert split(join(segments)) == segments
    assert split("") == []


@pytest.mark.parametrize(
    "tokens, left", [(600, "a:512+b:88"), (512, "a:512"), (5, "a:5"), (0, ""), (9999, "a:512+b:100")]
)
def test_cut_to(tokens: int, left: str) -> None:
    assert cut_to("a:512+b:100", tokens) == left


def test_a_known_block_behind_an_unknown_one_is_no_beginning() -> None:
    names = BlockNames()
    assert names.prefix([1, 2], 1024) == "h1:1024"
    assert names.prefix([5, 2, 6], 1536) == "h5:512"


def test_what_one_request_alone_names_is_its_own_text() -> None:
    assert drop_unshared(["a:5+b:3", "a:5+c:2", "d:9", "a:5+c:2+e:1"]) == ["a:5", "a:5+c:2", "", "a:5+c:2"]


def test_shared_tokens_are_those_of_the_leading_segments() -> None:
    assert shared_tokens(["a:5", "a:5+b:3", "a:3+b:3", "a:5+b:4", "c:1+a:5"]) == 0 + 5 + 3 + 5 + 3


def test_a_block_trace_shares_exactly_its_equal_leading_blocks() -> None:
    """Against the blocks themselves: what an endless cache of them would hit."""
    requests = [[0, 1, 2, 3], [0, 1, 4], [0, 5], [0, 1, 2, 6, 7], [0, 1, 4, 8], [9], [0, 1, 2, 6]]
    names, seen, hits = BlockNames(), set(), 0
    prefixes = [names.prefix(blocks, 512 * len(blocks)) for blocks in requests]
    for blocks in requests:
        hits += sum(512 for block in blocks if block in seen)
        seen.update(blocks)
    assert shared_tokens(prefixes) == hits == shared_tokens(drop_unshared(prefixes))
