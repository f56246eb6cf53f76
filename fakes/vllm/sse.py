"""The bytes of an answer: server-sent events as vLLM sends them, each one HTTP chunk, and the whole JSON bodies.

A stream's token events differ by their word only, so each is encoded once per request and word and then written as it
is: no JSON is built per token.
"""

from __future__ import annotations

import json

from fakes.vllm.requests import CompletionRequest

FINGERPRINT = "vllm-0.32.0-fa4e0000"
WORDS = (
    " then", " sun", " rose", " over", " a", " quiet", " town", " and", " no", " one", " saw", " it", " for", " they",
    " were", " still", " asleep", " until", " some", " bell", " rang", " twice", " near", " an", " old", " stone",
    " bridge", " by", " the", " slow", " brown", " river",
)  # fmt: skip
DONE = b"data: [DONE]\n\n"


def chunk(data: bytes) -> bytes:
    """One HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


DONE_CHUNK = chunk(DONE)


def word(seed: int, index: int) -> int:
    """Which word token ``index`` (from 1) of a text is. With an odd factor a text uses all words before it repeats."""
    return (seed + index * 11) % len(WORDS)


def text_of(seed: int, tokens: int) -> str:
    return "".join(WORDS[word(seed, i)] for i in range(1, tokens + 1))


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
        self._frames: list[bytes | None] = [None] * len(WORDS)

    def token(self, index: int) -> bytes:
        w = word(self._request.text_seed, index)
        if self._usage_always:
            return self._event(WORDS[w], None, index)
        frame = self._frames[w]
        if frame is None:
            frame = self._frames[w] = self._event(WORDS[w], None, index)
        return frame

    def first(self, index: int) -> bytes:
        """What precedes the first token's own event: in a chat the role, in a completion nothing."""
        if not self._request.chat:
            return b""
        usage = self._usage_field(0)
        return self._chunk(
            '"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]'
            f'{usage},"prompt_token_ids":null,"prompt_text":null'
        )

    def last(self, index: int, finish: str, *, with_text: bool) -> bytes:
        """The last token's event, usage where it was asked for, and ``[DONE]``. An end of sequence has no text."""
        text = WORDS[word(self._request.text_seed, index)] if with_text else ""
        event = self._event(text, finish, index)
        if not self._usage_last:
            return event + DONE_CHUNK
        usage = usage_json(self._request.prompt_tokens, index)
        return event + self._chunk(f'"choices":[],"usage":{usage}}},"system_fingerprint":"{FINGERPRINT}"') + DONE_CHUNK

    def _event(self, text: str, finish: str | None, index: int) -> bytes:
        reason = "null" if finish is None else f'"{finish}"'
        if self._request.chat:
            stop = "" if finish is None else ',"stop_reason":null'
            choice = (
                f'{{"index":0,"delta":{{"content":"{text}"}},"logprobs":null,"finish_reason":{reason}{stop},'
                '"token_ids":null}'
            )
        else:
            choice = (
                f'{{"index":0,"text":"{text}","logprobs":null,"finish_reason":{reason},"stop_reason":null,'
                '"prompt_token_ids":null,"token_ids":null}'
            )
        print_here = finish is not None and not self._usage_last
        fingerprint = f',"system_fingerprint":"{FINGERPRINT}"' if print_here else ""
        return self._chunk(f'"choices":[{choice}]{self._usage_field(index)}{fingerprint}')

    def _usage_field(self, completion_tokens: int) -> str:
        if not self._usage_always:
            return ""
        usage = usage_json(self._request.prompt_tokens, completion_tokens)
        return f',"usage":{usage},"completion_tokens_details":null}}'

    def _chunk(self, fields: str) -> bytes:
        return chunk(f"{self._head}{fields}}}\n\n".encode())


def whole_body(request: CompletionRequest, request_id: str, created: int, tokens: int, finish: str) -> bytes:
    """The body of an answer that was not streamed."""
    text = text_of(request.text_seed, tokens - 1 if finish == "stop" else tokens)
    ending = {"logprobs": None, "finish_reason": finish, "stop_reason": None, "token_ids": None}
    prompt_nulls = {"prompt_logprobs": None, "prompt_token_ids": None}
    usage = {
        "prompt_tokens": request.prompt_tokens,
        "total_tokens": request.prompt_tokens + tokens,
        "completion_tokens": tokens,
        "prompt_tokens_details": None,
        "completion_tokens_details": None,
    }
    choice: dict[str, object]
    if request.chat:
        message = {"role": "assistant", "content": text, "refusal": None, "annotations": None, "audio": None}
        message |= {"function_call": None, "reasoning": None}
        choice = {"index": 0, "message": message, **ending, "routed_experts": None}
    else:
        choice = {"index": 0, "text": text, **ending, **prompt_nulls, "routed_experts": None}
    body = {
        "id": request_id,
        "object": "chat.completion" if request.chat else "text_completion",
        "created": created,
        "model": request.model,
        "choices": [choice],
        "service_tier": None,
        "system_fingerprint": FINGERPRINT,
        "usage": usage,
        **({**prompt_nulls, "prompt_text": None} if request.chat else {}),
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "metrics": None,
    }
    return json.dumps(body, separators=(",", ":")).encode()
