"""Writes a model directory that a vLLM server can load without any weights (``--load-format dummy``).

``python tiny_model.py OUT [HIDDEN LAYERS]``, by a Python that has ``tokenizers``, as vLLM's has. Two layers of 64 if no
more is asked for, a vocabulary of byte pairs trained on made-up words: enough to go through tokenizer, scheduler,
sampler and detokenizer for real.
"""

from __future__ import annotations

import json
import sys
from itertools import product
from pathlib import Path
from random import Random

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

MAX_LEN = 2048
HEAD = 32
SPECIAL = ["<unk>", "<s>", "</s>", "<|user|>", "<|assistant|>", "<|system|>"]
TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def made_up_lines(rng: Random) -> list[str]:
    syllables = ["".join(pair) for pair in product("bdfgklmnprstvz", "aeiou")]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(5000)]
    return [" ".join(rng.choices(words, k=20)) + "." for _ in range(3000)]


def write(out: Path, hidden: int = 64, layers: int = 2) -> None:
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4096,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(made_up_lines(Random(1)), trainer)
    tokenizer.save(str(out / "tokenizer.json"))
    ends = {"bos_token_id": 1, "eos_token_id": 2}
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    files = {
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": MAX_LEN,
            "clean_up_tokenization_spaces": False,
            "chat_template": TEMPLATE,
            **names,
        },
        "special_tokens_map.json": names,
        "generation_config.json": ends,
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": tokenizer.get_vocab_size(),
            "hidden_size": hidden,
            "intermediate_size": 2 * hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": hidden // HEAD,
            "num_key_value_heads": hidden // HEAD,
            "max_position_embeddings": MAX_LEN,
            "rms_norm_eps": 1e-5,
            "rope_theta": 10000.0,
            "hidden_act": "silu",
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            **ends,
        },
    }
    for name, content in files.items():
        (out / name).write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]), *map(int, sys.argv[2:]))
