"""The bytes of an answer: server-sent events as vLLM sends them, each one HTTP chunk, and the whole JSON bodies.

A stream's token events differ by their word only, so each is encoded once per request and word and then written as it
is: no JSON is built per token.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import log

from fakes.vllm.requests import CompletionRequest

FINGERPRINT = "vllm-0.32.0-fa4e0000"
WORDS = (
    " then", " sun", " rose", " over", " a", " quiet", " town", " and", " no", " one", " saw", " it", " for", " they",
    " were", " still", " asleep", " until", " some", " bell", " rang", " twice", " near", " an", " old", " stone",
    " bridge", " by", " the", " slow", " brown", " river",
)  # fmt: skip
LOGPROB = -log(4096)
"""Of each token: the model of the captures has a vocabulary of 4096 and random weights."""
DONE = b"data: [DONE]\n\n"


def chunk(data: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


DONE_CHUNK = chunk(DONE)


def word(seed: int, index: int) -> int:
    """Which word token ``index`` (from 1) of a text is. With an odd factor a text uses all words before it repeats."""
    return (seed + index * 11) % len(WORDS)


def choice_seed(seed: int, choice: int) -> int:
    """Another choice of the same request says something else."""
    return seed + choice * 7


def text_of(seed: int, tokens: int) -> str:
    return "".join(WORDS[word(seed, i)] for i in range(1, tokens + 1))


def logprobs_of(words: Sequence[str], top: int) -> list[dict[str, object]]:
    """Of a chat's tokens. All words are equally likely, as from a model of random weights; ``top`` of them are named,
    the chosen one first."""
    return [_logprob(text) | {"top_logprobs": [_logprob(t) for t in (text, *WORDS)[:top]]} for text in words]


def _logprob(text: str) -> dict[str, object]:
    return {"token": text, "logprob": LOGPROB, "bytes": list(text.encode())}


def error_event(message: str, type: str, status: int) -> bytes:
    """An error after the headers: an event of a stream whose status was 200."""
    error = {"error": {"message": message, "type": type, "param": None, "code": status}}
    return chunk(b"data: " + json.dumps(error).encode() + b"\n\n")


def usage_json(prompt_tokens: int, completion_tokens: int) -> str:
    total = prompt_tokens + completion_tokens
    return f'{{"prompt_tokens":{prompt_tokens},"total_tokens":{total},"completion_tokens":{completion_tokens}'


class EventEncoder:
    """Encodes one stream. ``force_usage`` is the server's own switch; it puts usage on every event."""

    def __init__(self, request: CompletionRequest, request_id: str, created: int, *, force_usage: bool = False) -> None:
        self._request = request
        self._usage_always = force_usage or (request.include_usage and request.continuous_usage)
        self._usage_last = force_usage or request.include_usage
        kind = "chat.completion.chunk" if request.chat else "text_completion"
        model = json.dumps(request.model)
        self._head = f'data: {{"id":{json.dumps(request_id)},"object":"{kind}","created":{created},"model":{model},'
        self._seed = request.text_seed
        self._frames: dict[int, bytes] = {}

    def token(self, choice: int, index: int) -> bytes:
        key = (self._seed + choice * 7 + index * 11) % len(WORDS) + (choice << 8)
        frame = self._frames.get(key)
        if frame is None:
            frame = self._event(choice, WORDS[key & 0xFF], None, index)
            if not self._usage_always:
                self._frames[key] = frame
        return frame

    def first(self) -> bytes:
        """What precedes the first token's own event: in a chat the role, for each choice; in a completion nothing."""
        if not self._request.chat:
            return b""
        usage = self._usage_field(0)
        return b"".join(
            self._chunk(
                f'"choices":[{{"index":{choice},"delta":{{"role":"assistant","content":""}},"logprobs":null,'
                f'"finish_reason":null}}]{usage},"prompt_token_ids":null,"prompt_text":null'
            )
            for choice in range(self._request.n)
        )

    def last(self, choice: int, index: int, finish: str, *, with_text: bool) -> bytes:
        """The last token's event of a choice. An end of sequence has no text."""
        text = WORDS[word(choice_seed(self._seed, choice), index)] if with_text else ""
        return self._event(choice, text, finish, index)

    def end(self, completion_tokens: int) -> bytes:
        """Usage where it was asked for, and ``[DONE]``."""
        if not self._usage_last:
            return DONE_CHUNK
        usage = usage_json(self._request.prompt_tokens, completion_tokens)
        return self._chunk(f'"choices":[],"usage":{usage}}},"system_fingerprint":"{FINGERPRINT}"') + DONE_CHUNK

    def _event(self, choice: int, text: str, finish: str | None, index: int) -> bytes:
        reason = "null" if finish is None else f'"{finish}"'
        if self._request.chat:
            stop = "" if finish is None else ',"stop_reason":null'
            content = (
                f'{{"index":{choice},"delta":{{"content":"{text}"}},"logprobs":{self._logprobs(text)},'
                f'"finish_reason":{reason}{stop},"token_ids":null}}'
            )
        else:
            content = (
                f'{{"index":{choice},"text":"{text}","logprobs":null,"finish_reason":{reason},"stop_reason":null,'
                '"prompt_token_ids":null,"token_ids":null}'
            )
        print_here = finish is not None and not self._usage_last
        fingerprint = f',"system_fingerprint":"{FINGERPRINT}"' if print_here else ""
        return self._chunk(f'"choices":[{content}]{self._usage_field(index)}{fingerprint}')

    def _logprobs(self, text: str) -> str:
        top = self._request.top_logprobs
        if top is None:
            return "null"
        return json.dumps({"content": logprobs_of([text], top)}, separators=(",", ":"))

    def _usage_field(self, completion_tokens: int) -> str:
        if not self._usage_always:
            return ""
        usage = usage_json(self._request.prompt_tokens, completion_tokens)
        return f',"usage":{usage},"completion_tokens_details":null}}'

    def _chunk(self, fields: str) -> bytes:
        return chunk(f"{self._head}{fields}}}\n\n".encode())


def whole_body(
    request: CompletionRequest, request_id: str, created: int, choices: Sequence[tuple[int, str]]
) -> bytes:  # fmt: skip
    """The body of an answer that was not streamed; of each choice its tokens and finish_reason."""
    prompt_nulls = {"prompt_logprobs": None, "prompt_token_ids": None}
    total = sum(tokens for tokens, _ in choices)
    usage = {
        "prompt_tokens": request.prompt_tokens,
        "total_tokens": request.prompt_tokens + total,
        "completion_tokens": total,
        "prompt_tokens_details": None,
        "completion_tokens_details": None,
    }
    body = {
        "id": request_id,
        "object": "chat.completion" if request.chat else "text_completion",
        "created": created,
        "model": request.model,
        "choices": [_choice(request, i, *ended) for i, ended in enumerate(choices)],
        "service_tier": None,
        "system_fingerprint": FINGERPRINT,
        "usage": usage,
        **({**prompt_nulls, "prompt_text": None} if request.chat else {}),
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "metrics": None,
    }
    return json.dumps(body, separators=(",", ":")).encode()


def _choice(request: CompletionRequest, index: int, tokens: int, finish: str) -> dict[str, object]:
    seed = choice_seed(request.text_seed, index)
    shown = tokens - 1 if finish == "stop" else tokens
    text = text_of(seed, shown)
    ending = {"finish_reason": finish, "stop_reason": None, "token_ids": None}
    if not request.chat:
        nulls = {"prompt_logprobs": None, "prompt_token_ids": None, "routed_experts": None}
        return {"index": index, "text": text, "logprobs": None, **ending, **nulls}
    message = {"role": "assistant", "content": text, "refusal": None, "annotations": None, "audio": None}
    message |= {"function_call": None, "reasoning": None}
    logprobs = None
    if request.top_logprobs is not None:
        words = [WORDS[word(seed, i)] for i in range(1, shown + 1)]
        logprobs = {"content": logprobs_of(words, request.top_logprobs)}
    return {"index": index, "message": message, "logprobs": logprobs, **ending, "routed_experts": None}
