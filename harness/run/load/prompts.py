"""Prompts of a given number of words, cut from one long text that is made once: a prompt costs a slice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from zlib import crc32

from harness.run.load.api import CHAT
from harness.run.load.arrival import DEFAULT_TENANT, Arrival

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

    def text(self, request_id: int, words: int, prefix: str = "") -> str:
        """Exactly ``words`` words (at least one): those of the prefix, then some that are the request's own."""
        words = max(1, words)
        parts = []
        for name, length in _segments(prefix):
            length = min(length, words)
            if length:
                parts.append(self._named(name, length))
                words -= length
        if words:
            parts.append(self._from(crc32(f"{self._seed}:{request_id}".encode()) % _POOL_WORDS, words))
        return " ".join(parts)

    def _named(self, name: str, words: int) -> str:
        """The beginning of the endless text of this name. Its first word is the name, so that no two texts agree."""
        if words == 1:
            return name
        return f"{name} {self._from(crc32(f'{self._seed}/{name}'.encode()) % _POOL_WORDS, words - 1)}"

    def _from(self, start: int, words: int) -> str:
        """Words from one place of the pool on, going round where it ends."""
        rounds, rest = divmod(start + words, _POOL_WORDS)
        stop = rounds * len(self._text) + self._starts[rest]
        text = self._text * (rounds + 1)
        return text[self._starts[start] : stop - 1]


def _segments(prefix: str) -> Iterator[tuple[str, int]]:
    """As ``harness.plan.prefixes`` writes them: ``name:tokens+name:tokens``."""
    for part in prefix.split("+") if prefix else ():
        name, _, tokens = part.rpartition(":")
        yield name, int(tokens)


class Bodies:
    """Request bodies of one model. Everything but the prompt and the numbers is made once."""

    def __init__(self, model: str, seed: int, flavour: str = CHAT) -> None:
        self._prompts = Prompts(seed)
        asked = '"messages":[{"role":"user","content":"' if flavour == CHAT else '"prompt":"'
        end = '"}]' if flavour == CHAT else '"'
        self._head = f'{{"model":{json.dumps(model)},{asked}'
        self._streamed = end + ',"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true,"max_tokens":'
        self._whole = end + ',"stream":false,"ignore_eos":true,"max_tokens":'

    def of(self, arrival: Arrival) -> bytes:
        return self.body(
            arrival.request_id,
            arrival.prompt_tokens,
            arrival.output_tokens,
            prefix=arrival.prefix,
            stream=arrival.stream,
            priority=arrival.priority,
            user=arrival.tenant if arrival.tenant != DEFAULT_TENANT else "",
        )

    def body(
        self,
        request_id: int,
        prompt_words: int,
        max_tokens: int,
        *,
        prefix: str = "",
        stream: bool = True,
        priority: int = 0,
        user: str = "",
    ) -> bytes:
        """A priority of 0 is every server's default and is not sent: one without priorities would refuse it.

        ``user`` is OpenAI's name for the tenant, by which gateways count and limit."""
        text = self._prompts.text(request_id, prompt_words, prefix)
        tail = self._streamed if stream else self._whole
        last = f',"priority":{priority}' if priority else ""
        last += f',"user":{json.dumps(user)}' if user else ""
        return f"{self._head}{text}{tail}{max_tokens}{last}}}".encode()
