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


def test_prompts_with_equal_segments_begin_alike() -> None:
    prompts = Prompts(3)
    one = prompts.text(1, 100, "p0.0:40+p1.7:30").split()
    two = prompts.text(2, 90, "p0.0:40+p1.7:30").split()
    other = prompts.text(3, 90, "p0.0:40+p1.8:30").split()
    assert (len(one), len(two)) == (100, 90)
    assert one[:70] == two[:70] and one[70:80] != two[70:80]
    assert one[:40] == other[:40] and one[40] != other[40]


def test_a_longer_segment_of_one_name_goes_on() -> None:
    """So a session's turn begins with all of the turn before."""
    short, long = Prompts(3).text(1, 50, "s4:50"), Prompts(3).text(2, 900, "s4:900")
    assert long.startswith(short + " ")


@pytest.mark.parametrize("words", [1, 3, 40, 41, 70])
def test_a_prompt_shorter_than_its_prefix_is_cut(words: int) -> None:
    assert len(Prompts(3).text(1, words, "a:40+b:30").split()) == words


def test_a_body_says_what_is_not_as_usual() -> None:
    bodies = Bodies("m", 3)
    usual = json.loads(bodies.body(1, 5, 9))
    assert "priority" not in usual and usual["stream"] is True
    body = json.loads(bodies.body(1, 5, 9, stream=False, priority=-3, prefix="p:2"))
    assert (body["stream"], body["priority"], body["max_tokens"]) == (False, -3, 9)
    assert "stream_options" not in body
