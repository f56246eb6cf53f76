"""Prompts of a given number of words, cut from one long text that is made once: a prompt costs a slice."""

from __future__ import annotations

import json
from random import Random
from zlib import crc32

_WORD_POOL = """
the node was slow to drain and a stream of tokens went on while two pods sat in line for one more card in the rack so we
ask why did it take so long what does the log say now can you sum it up in ten lines and list each cause with its time
then show how a small change would help us keep more load on fewer cards next week
"""
_WORDS = _WORD_POOL.split()
_POOL_WORDS = 1 << 15


class Prompts:
    """Request ``i`` of a seed always gets the same words, wherever and in whatever order it is asked for."""

    def __init__(self, seed: int) -> None:
        rng = Random(f"{seed}:prompts")
        words = rng.choices(_WORDS, k=_POOL_WORDS)
        self._seed = seed
        self._starts: list[int] = []
        at = 0
        for word in words:
            self._starts.append(at)
            at += len(word) + 1
        self._text = " ".join(words) + " "

    def text(self, request_id: int, words: int) -> str:
        """Exactly ``words`` words (at least one), starting somewhere in the pool and going round where it ends."""
        words = max(1, words)
        start = crc32(f"{self._seed}:{request_id}".encode()) % _POOL_WORDS
        rounds, rest = divmod(start + words, _POOL_WORDS)
        stop = rounds * len(self._text) + self._starts[rest]
        text = self._text * (rounds + 1)
        return text[self._starts[start] : stop - 1]


class Bodies:
    """Request bodies of one model. Everything but the prompt and ``max_tokens`` is made once."""

    def __init__(self, model: str, seed: int) -> None:
        self._prompts = Prompts(seed)
        self._head = f'{{"model":{json.dumps(model)},"messages":[{{"role":"user","content":"'
        self._tail = '"}],"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true,"max_tokens":'

    def body(self, request_id: int, prompt_words: int, max_tokens: int) -> bytes:
        return f"{self._head}{self._prompts.text(request_id, prompt_words)}{self._tail}{max_tokens}}}".encode()
