"""Bytes of answers against those captured from a real server."""

from __future__ import annotations

import json

import pytest

from fakes.vllm.requests import CompletionRequest, RequestRefused, parse_request
from fakes.vllm.sse import FINGERPRINT, WORDS, EventEncoder, whole_body, word

ID, CREATED = "chatcmpl-83a4aab876784db7", 1795970163
CHAT_HEAD = f'data: {{"id":"{ID}","object":"chat.completion.chunk","created":{CREATED},"model":"tiny",'


def make(raw: dict[str, object], *, chat: bool = True) -> CompletionRequest:
    body = {"model": "tiny", "max_tokens": 3, "ignore_eos": True, **raw}
    body |= {"messages": [{"role": "user", "content": "hello there"}]} if chat else {"prompt": "hello there"}
    return parse_request(json.dumps(body).encode(), chat=chat, names=("tiny",), max_model_len=2048)


def text(request: CompletionRequest, index: int) -> str:
    return WORDS[word(request.text_seed, index)]


def events(encoder: EventEncoder, tokens: int, finish: str = "length") -> list[str]:
    """Undoes the HTTP chunks, checking each one's length."""
    data = encoder.first() + b"".join(encoder.token(0, i) for i in range(1, tokens))
    data += encoder.last(0, tokens, finish, with_text=finish != "stop") + encoder.end(tokens)
    found = []
    while data:
        size, _, rest = data.partition(b"\r\n")
        n = int(size, 16)
        assert rest[n : n + 2] == b"\r\n"
        found.append(rest[:n].decode())
        data = rest[n + 2 :]
    assert all(e.endswith("\n\n") for e in found)
    return [e.removesuffix("\n\n") for e in found]


def test_a_chat_stream() -> None:
    r = make({"stream": True})
    role, first, second, last, done = events(EventEncoder(r, ID, CREATED), 3)
    assert role == (
        CHAT_HEAD + '"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,'
        '"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}'
    )
    assert first == (
        f'{CHAT_HEAD}"choices":[{{"index":0,"delta":{{"content":"{text(r, 1)}"}},"logprobs":null,'
        '"finish_reason":null,"token_ids":null}]}'
    )
    assert second == first.replace(text(r, 1), text(r, 2))
    assert last == (
        f'{CHAT_HEAD}"choices":[{{"index":0,"delta":{{"content":"{text(r, 3)}"}},"logprobs":null,'
        f'"finish_reason":"length","stop_reason":null,"token_ids":null}}],"system_fingerprint":"{FINGERPRINT}"}}'
    )
    assert done == "data: [DONE]"


def test_usage_is_one_more_event_and_takes_the_fingerprint_with_it() -> None:
    r = make({"stream": True, "stream_options": {"include_usage": True}})
    *_, last, usage, _done = events(EventEncoder(r, ID, CREATED), 3)
    assert last.endswith('"finish_reason":"length","stop_reason":null,"token_ids":null}]}')
    assert usage == (
        CHAT_HEAD + '"choices":[],"usage":{"prompt_tokens":2,"total_tokens":5,"completion_tokens":3},'
        f'"system_fingerprint":"{FINGERPRINT}"}}'
    )


def test_continuous_usage_is_on_every_event() -> None:
    r = make({"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}})
    role, first, *_ = events(EventEncoder(r, ID, CREATED), 3)
    assert role.endswith(
        '"finish_reason":null}],"usage":{"prompt_tokens":2,"total_tokens":2,"completion_tokens":0,'
        '"completion_tokens_details":null},"prompt_token_ids":null,"prompt_text":null}'
    )
    assert first.endswith(
        '"token_ids":null}],"usage":{"prompt_tokens":2,"total_tokens":3,"completion_tokens":1,'
        '"completion_tokens_details":null}}'
    )


def test_an_end_of_sequence_has_no_text() -> None:
    r = make({"stream": True})
    *_, last, _done = events(EventEncoder(r, ID, CREATED), 2, "stop")
    assert '"delta":{"content":""},"logprobs":null,"finish_reason":"stop","stop_reason":null' in last


def test_a_completion_stream_has_no_role_event() -> None:
    r = make({"stream": True}, chat=False)
    first, last, _done = events(EventEncoder(r, "cmpl-1", CREATED), 2)
    head = f'data: {{"id":"cmpl-1","object":"text_completion","created":{CREATED},"model":"tiny","choices":['
    nulls = '"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]'
    assert first == f'{head}{{"index":0,"text":"{text(r, 1)}","logprobs":null,"finish_reason":null,{nulls}}}'
    assert last == (
        f'{head}{{"index":0,"text":"{text(r, 2)}","logprobs":null,"finish_reason":"length",{nulls},'
        f'"system_fingerprint":"{FINGERPRINT}"}}'
    )


def test_whole_bodies() -> None:
    chat = make({"max_tokens": 2})
    words = text(chat, 1) + text(chat, 2)
    assert whole_body(chat, "chatcmpl-my-id-1", CREATED, [(2, "length")]).decode() == (
        f'{{"id":"chatcmpl-my-id-1","object":"chat.completion","created":{CREATED},"model":"tiny","choices":[{{"index"'
        f':0,"message":{{"role":"assistant","content":"{words}","refusal":null,"annotations":null,"audio":null,'
        '"function_call":null,"reasoning":null},"logprobs":null,"finish_reason":"length","stop_reason":null,'
        f'"token_ids":null,"routed_experts":null}}],"service_tier":null,"system_fingerprint":"{FINGERPRINT}","usage":'
        '{"prompt_tokens":2,"total_tokens":4,"completion_tokens":2,"prompt_tokens_details":null,'
        '"completion_tokens_details":null},"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,'
        '"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}'
    )
    plain = json.loads(whole_body(make({}, chat=False), "cmpl-1", CREATED, [(2, "length")]))
    assert list(plain["choices"][0]) == [
        "index", "text", "logprobs", "finish_reason", "stop_reason", "token_ids", "prompt_logprobs",
        "prompt_token_ids", "routed_experts",
    ]  # fmt: skip


def refusal(body: bytes, *, chat: bool = True) -> str:
    with pytest.raises(RequestRefused) as refused:
        parse_request(body, chat=chat, names=("tiny",), max_model_len=2048)
    return refused.value.body().decode()


def test_refusals_of_completions() -> None:
    assert '"param":"prompt","code":400' in refusal(b'{"model":"tiny"}', chat=False)
    ids = json.dumps({"prompt": [10] * 3000}).encode()
    assert "your prompt contains 3000 input tokens" in refusal(ids, chat=False)


def test_prompt_tokens_are_words_and_a_missing_model_is_served() -> None:
    body = {"messages": [{"role": "system", "content": "a b"}, {"role": "user", "content": [{"text": " c  d e\n"}]}]}
    r = parse_request(json.dumps(body).encode(), chat=True, names=("tiny",), max_model_len=2048)
    assert (r.model, r.prompt_tokens, r.max_tokens) == ("tiny", 5, 2043)
    assert r.stop_at <= r.max_tokens


def test_without_ignore_eos_the_length_depends_on_the_prompt_alone() -> None:
    natural = make({"ignore_eos": False, "max_tokens": 2000})
    again = make({"ignore_eos": False, "max_tokens": 1900})
    assert natural.stop_at == again.stop_at
    assert natural.stop_reason == "stop"
    late = make({"ignore_eos": False, "max_tokens": 2000, "min_tokens": 1500})
    assert (late.stop_at, late.stop_reason) == (1501, "stop")
    assert (make({"ignore_eos": True}).stop_at, make({}).stop_reason) == (3, "length")
