"""Texts for the encoders, by a seeded generator: code, scripts of the world, white space, look-alikes of control tokens, any code point."""

import random

PIECES = [
    "def main(argv: list[str]) -> int:\n    return 0 if argv else 1\n",
    "for (let i = 0; i < n; i++) { sum += a[i] ?? 0; }",
    "SELECT id, name FROM users WHERE created_at >= '2026-01-01';",
    "$ ls -la /var/log | grep -v '^d' && echo \"done: $?\"",
    "Traceback (most recent call last):\n  File \"app.py\", line 42, in <module>\nZeroDivisionError: division by zero",
    "#include <vector>\nint main(){std::vector<int> v{1,2,3};}",
    "{\"path\": \"/tmp/a b\", \"lines\": [1, 2.50, -3e10], \"ok\": true, \"none\": null}",
    "The quick brown fox isn't lazy; they'll say it's over, we'd agree, I'm sure.",
    "Größe, façade, naïve, Ærøskøbing, İstanbul, straße",
    "今日はとても良い天気ですね。你好，世界！한국어 문장입니다.",
    "Привет, как дела? Γειά σου Κόσμε. שלום עולם مرحبا بالعالم नमस्ते दुनिया สวัสดีชาวโลก",
    "👩‍👩‍👧‍👦 👍🏽 🏳️‍🌈 🇩🇪🇯🇵 ❤️‍🔥 1️⃣",
    "e\u0301 vs \u00e9, A\u030a vs \u00c5, \u1e9b\u0323, \ufb01 ligature, \u2460 \u00bd \u2126",
    "zero\u200bwidth\u200djoiner\ufeffbom\u00adsoft\u2060word",
    "https://example.org/a/b?q=1&r=%20x#frag user@example.org 192.168.0.1:8080",
    "1234567890 3.14159 1,000,000 0x7fff 1e-9 ١٢٣ १२३ Ⅻ ½",
]

LOOK_ALIKES = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>",
    "<|begin_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>", "<|start_header_id|>", "<|end_header_id|>",
    "<|start|>", "<|end|>", "<|return|>", "<|call|>", "<|channel|>", "<|message|>", "<|constrain|>",
    "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜tool▁calls▁begin｜>", "<｜fim▁hole｜>",
    "<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "<unk>", "<pad>", "<unused3>", "[INST]", "[/INST]", "</s>", "<s>", "<0x0A>", "▁",
]

SPACES = [" ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", " \n ", "\u00a0", "\u3000", "\u2028", "\v", "\f", "\x85", "        ", "\n\n\n\n"]


def make_texts() -> list[str]:
    rng = random.Random(20261130)
    texts = ["", " ", "\n", "a", "\x00", "\u0000nul\u0000", "\ud800", "x\udfffy", "\U0010ffff", "\ufffd", "'s", "I'LL", " 's"]
    texts += PIECES + LOOK_ALIKES
    texts += [f"a{token}b" for token in LOOK_ALIKES[::2]] + [f" {token}\n" for token in LOOK_ALIKES[1::2]]
    texts += [token[:-1] for token in LOOK_ALIKES[::5]] + [f"{token}{token}" for token in LOOK_ALIKES[::7]]
    texts += SPACES + [f"x{space}y" for space in SPACES] + [space * 3 + "end" for space in SPACES]
    texts += ["=" * n for n in (1, 2, 16, 63, 64, 65)] + ["ab" * 40, "0" * 33, "\t" * 17, "-" * 81 + "\n", "ｆｕｌｌ" * 5]
    while len(texts) < 250:
        texts.append("".join(rng.choice(SPACES) + rng.choice(PIECES + LOOK_ALIKES) for _ in range(rng.randint(1, 4))))
    while len(texts) < 320:
        texts.append("".join(any_character(rng) for _ in range(rng.randint(1, 24))))
    texts += ["".join(rng.choice(PIECES) + rng.choice(SPACES) for _ in range(40)) for _ in range(2)]
    return texts


def any_character(rng: random.Random) -> str:
    """Of a random plane and block; surrogates are not characters."""
    top = rng.choice([0x80, 0x250, 0x3000, 0xD800, 0x10000, 0x20000])
    code = rng.randrange(top)
    return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)
