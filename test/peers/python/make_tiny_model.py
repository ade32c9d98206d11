"""Makes the model that the peers serve: `make_tiny_model.py FOLDER`, with torch 2.10 and transformers 5 (hatchery's environment).

A randomly initialised Qwen3 with two layers and a byte-level vocabulary. The folder is in the repository (models/), because torch is
far larger than what it makes; this tells where it comes from. The weights are the same bytes on every machine.
"""

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

SEED = 1234
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|reserved_{i}|>" for i in range(5))]
END_OF_TURN = 2
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ROPE_THETA = 10000.0


def save_tokenizer(folder: Path) -> None:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate(SPECIALS + alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=SPECIALS[1:2] + SPECIALS[3:],
    )
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(folder)


def save_weights(folder: Path) -> None:
    torch.manual_seed(SEED)
    config = Qwen3Config(
        vocab_size=264,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=1024,
        tie_word_embeddings=False,
        eos_token_id=END_OF_TURN,
        bos_token_id=None,
        pad_token_id=0,
        initializer_range=0.2,
        rope_theta=ROPE_THETA,
    )
    model = Qwen3ForCausalLM(config).to(torch.float32)
    model.generation_config.eos_token_id = END_OF_TURN
    model.generation_config.pad_token_id = 0
    model.save_pretrained(folder, safe_serialization=True)


def make_readable_by_transformers_4(folder: Path) -> None:
    """skyrl-tx reads the folder with version 4, which has other names for the same."""
    tokenizer_file = folder / "tokenizer_config.json"
    settings = json.loads(tokenizer_file.read_text())
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    settings["additional_special_tokens"] = settings.pop("extra_special_tokens", [])
    tokenizer_file.write_text(json.dumps(settings, indent=2))
    config_file = folder / "config.json"
    config_file.write_text(json.dumps({**json.loads(config_file.read_text()), "rope_theta": ROPE_THETA}, indent=2))


if __name__ == "__main__":
    out = Path(sys.argv[1])
    save_tokenizer(out)
    save_weights(out)
    make_readable_by_transformers_4(out)
