"""The model folder that mockers and AIPerf read: a tokenizer that is made up, and no weights.

Only lengths count in a rehearsal, so any tokenizer does that gives back as many tokens as it was
given. This one is a byte-level BPE whose merges are pairs, and pairs of pairs, of small letters;
the chat template adds no token.
"""

from __future__ import annotations

import itertools
import json
import string
from collections.abc import Mapping
from typing import Any

_VOCABULARY = 4096
_END = "<|end|>"
_LONGEST_REQUEST_TOKENS = 2**20
_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def model_files() -> Mapping[str, str]:
    """The files by name, the same ones every time."""
    return {
        "config.json": _text(_config()),
        "tokenizer.json": _text(_tokenizer()),
        "tokenizer_config.json": _text(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "eos_token": _END,
                "model_max_length": _LONGEST_REQUEST_TOKENS,
                "chat_template": _TEMPLATE,
            }
        ),
    }


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=1) + "\n"


def _config() -> dict[str, Any]:
    """The least that passes for a model; its sizes mean nothing."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": _VOCABULARY,
        "max_position_embeddings": _LONGEST_REQUEST_TOKENS,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "torch_dtype": "bfloat16",
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": 64,
    }


def _tokenizer() -> dict[str, Any]:
    """In the format of the ``tokenizers`` library, version 1.0."""
    letters = string.ascii_lowercase
    pairs = [(a, b) for a in letters for b in letters]
    joined = ["".join(pair) for pair in pairs]
    single = _byte_characters()
    room = _VOCABULARY - 1 - len(single) - len(pairs)
    double = list(itertools.islice(itertools.product(joined, joined[:: len(joined) // 7]), room))
    merges = [*pairs, *double]
    words = [_END, *single, *("".join(merge) for merge in merges)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": 0,
                "content": _END,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
        ],
        "normalizer": None,
        "pre_tokenizer": {**level, "use_regex": True},
        "post_processor": None,
        "decoder": {**level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {word: number for number, word in enumerate(words)},
            "merges": [list(merge) for merge in merges],
        },
    }


def _byte_characters() -> list[str]:
    """The character that stands for each byte in a byte-level BPE: itself where it prints.

    The others follow from U+0100 on, as GPT-2 numbers them.
    """
    printed = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = itertools.count(0x100)
    return [chr(byte) if byte in printed else chr(next(others)) for byte in range(256)]
