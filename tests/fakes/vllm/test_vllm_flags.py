"""vLLM's command line as the fake takes it."""

from __future__ import annotations

import pytest

from fakes.vllm.flags import FlagError, ServerFlags, parse_flags


def test_the_flags_of_the_demo() -> None:
    flags = parse_flags(["--served-model-name", "llama-8b", "--max-num-seqs", "4", "--shutdown-timeout", "60"])
    assert flags == ServerFlags(served_model_names=("llama-8b",), max_num_seqs=4, shutdown_timeout_s=60)
    assert flags.names == ("llama-8b",)


def test_a_whole_command_with_a_model_and_underscores() -> None:
    flags = parse_flags(["vllm", "serve", "some/model", "--max_num_seqs=8", "--tensor-parallel-size", "2"])
    assert (flags.model, flags.max_num_seqs, flags.shutdown_timeout_s) == ("some/model", 8, 0)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        pytest.param(["--max-num-seq", "4"], "did you mean --max-num-seqs?", id="misspelt"),
        pytest.param(["--max-num-seqs", "many"], "invalid count value: 'many'", id="not-a-number"),
        pytest.param(["--max-num-seqs", "0"], "must be at least 1", id="zero"),
        pytest.param(["--shutdown-timeout", "-1"], "must not be negative", id="negative"),
    ],
)
def test_what_a_real_server_would_refuse(words: list[str], says: str) -> None:
    with pytest.raises(FlagError) as refused:
        parse_flags(words)
    assert says in str(refused.value)
