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
    data = encoder.first(1) + b"".join(encoder.token(i) for i in range(1, tokens))
    data += encoder.last(tokens, finish, with_text=finish != "stop")
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
    assert whole_body(chat, "chatcmpl-my-id-1", CREATED, 2, "length").decode() == (
        f'{{"id":"chatcmpl-my-id-1","object":"chat.completion","created":{CREATED},"model":"tiny","choices":[{{"index"'
        f':0,"message":{{"role":"assistant","content":"{words}","refusal":null,"annotations":null,"audio":null,'
        '"function_call":null,"reasoning":null},"logprobs":null,"finish_reason":"length","stop_reason":null,'
        f'"token_ids":null,"routed_experts":null}}],"service_tier":null,"system_fingerprint":"{FINGERPRINT}","usage":'
        '{"prompt_tokens":2,"total_tokens":4,"completion_tokens":2,"prompt_tokens_details":null,'
        '"completion_tokens_details":null},"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,'
        '"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}'
    )
    plain = json.loads(whole_body(make({}, chat=False), "cmpl-1", CREATED, 2, "length"))
    assert list(plain["choices"][0]) == [
        "index", "text", "logprobs", "finish_reason", "stop_reason", "token_ids", "prompt_logprobs",
        "prompt_token_ids", "routed_experts",
    ]  # fmt: skip


def refusal(body: bytes, *, chat: bool = True) -> str:
    with pytest.raises(RequestRefused) as refused:
        parse_request(body, chat=chat, names=("tiny",), max_model_len=2048)
    return refused.value.body().decode()


HELLO = '"messages":[{"role":"user","content":"hello there"}]'


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        pytest.param(
            f'{{"model":"nope",{HELLO}}}',
            '{"error":{"message":"The model `nope` does not exist. Valid aliases: tiny.","type":"NotFoundError",'
            '"param":"model","code":404}}',
            id="unknown-model",
        ),
        pytest.param(
            f'{{"model":"tiny",{HELLO},"max_tokens":5000}}',
            '{"error":{"message":"max_tokens=5000 cannot be greater than max_model_len=2048. Please request fewer '
            'output tokens. (parameter=max_tokens, value=5000)","type":"BadRequestError","param":"max_tokens",'
            '"code":400}}',
            id="max-tokens-too-large",
        ),
        pytest.param(
            f'{{"model":"tiny",{HELLO},"max_tokens":0}}',
            '{"error":{"message":"max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)","type":'
            '"BadRequestError","param":"max_tokens","code":400}}',
            id="max-tokens-0",
        ),
        pytest.param(
            '{"model": "tiny", ',
            "{\"error\":{\"message\":\"1 validation error:\\n  {'type': 'json_invalid', 'loc': 'body.18', 'msg': "
            "'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {'error': 'Expecting property name enclosed in "
            'double quotes\'}}","type":"Bad Request","param":"body.18","code":400}}',
            id="malformed",
        ),
        pytest.param(
            "",
            "{\"error\":{\"message\":\"1 validation error:\\n  {'type': 'missing', 'loc': 'body', 'msg': "
            '\'Field required\', \'input\': \'None\'}","type":"Bad Request","param":"body","code":400}}',
            id="empty",
        ),
        pytest.param(
            '{"model":"tiny"}',
            "{\"error\":{\"message\":\"1 validation error:\\n  {'type': 'missing', 'loc': 'body.messages', 'msg': "
            '\'Field required\', \'input\': \'<dict of 1 items>\'}","type":"Bad Request","param":"body.messages",'
            '"code":400}}',
            id="no-messages",
        ),
        pytest.param(
            '{"model":"tiny","messages":[]}',
            '{"error":{"message":"Cannot apply chat template to an empty conversation. Provide at least one message.",'
            '"type":"BadRequestError","param":null,"code":400}}',
            id="empty-messages",
        ),
        pytest.param(
            f'{{"model":"tiny",{HELLO},"stream_options":{{"include_usage":true}}}}',
            '{"error":{"message":"Stream options can only be defined when `stream=True`. (parameter=stream_options)",'
            '"type":"BadRequestError","param":"stream_options","code":400}}',
            id="stream-options-without-stream",
        ),
        pytest.param(
            f'{{"model":"tiny",{HELLO},"temperature":-1}}',
            '{"error":{"message":"temperature must be non-negative, got -1.0. (parameter=temperature, value=-1.0)",'
            '"type":"BadRequestError","param":"temperature","code":400}}',
            id="temperature-negative",
        ),
        pytest.param(
            f'{{"model":"tiny",{HELLO},"n":0}}',
            '{"error":{"message":"n must be at least 1, got 0.","type":"BadRequestError","param":null,"code":400}}',
            id="n0",
        ),
    ],
)
def test_refusals_as_captured(body: str, answer: str) -> None:
    assert refusal(body.encode()) == answer


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
