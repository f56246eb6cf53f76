from __future__ import annotations

import json

import pytest

from harness.run.load.prompts import Bodies, Prompts


@pytest.mark.parametrize("words", [1, 2, 1000, 40_000, 100_000])
def test_a_prompt_has_exactly_its_words(words: int) -> None:
    text = Prompts(3).text(17, words)
    assert len(text.split()) == words
    assert text == " ".join(text.split())


def test_a_request_s_prompt_depends_on_seed_and_id_only() -> None:
    prompts = Prompts(3)
    prompts.text(1, 50)
    assert prompts.text(2, 50) == Prompts(3).text(2, 50)
    assert len({Prompts(seed).text(i, 50) for seed in (3, 4) for i in (1, 2)}) == 4


def test_a_body_is_json_with_what_the_plan_says() -> None:
    body = json.loads(Bodies('a "model"', 3).body(5, 12, 34))
    assert (body["model"], body["max_tokens"]) == ('a "model"', 34)
    assert len(body["messages"][0]["content"].split()) == 12
