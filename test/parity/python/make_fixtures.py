"""
Writes what Python's transformers makes of texts and conversations: the expected ids of the parity tests.

    python make_fixtures.py FIXTURES NOW_MS FAMILY=FOLDER...

FIXTURES is the folder to write to. NOW_MS is the moment that templates take for now, in UTC. FAMILY* has another's vocabulary: no texts for it. `node test/parity/make.ts` calls this with everything.
"""

import json
import sys
from datetime import datetime, timezone
from pathlib import Path

from make_conversations import TOOLSETS, as_transformers, make_conversations
from make_texts import make_texts
from transformers import AutoTokenizer
from transformers.utils import chat_template_utils

REFUSED = "!"


def main(fixtures: Path, now_ms: int, families: dict[str, Path]) -> None:
    stop_clock(now_ms)
    texts, conversations = make_texts(), make_conversations()
    write_json(fixtures / "texts.json", texts)
    write_json(fixtures / "toolsets.json", TOOLSETS)
    write_json(fixtures / "conversations.json", conversations)
    for family, folder in families.items():
        tokenizer = AutoTokenizer.from_pretrained(folder)
        if not family.endswith("*"):
            write_ids(fixtures / f"{family}.texts.txt", [encode(tokenizer, text) for text in texts])
        write_ids(fixtures / f"{family.rstrip('*')}.conversations.txt", [render(tokenizer, conversation) for conversation in conversations])


def stop_clock(now_ms: int) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.fromtimestamp(now_ms / 1000, timezone.utc)

    chat_template_utils.datetime = Stopped


def encode(tokenizer, text: str) -> list[int] | None:
    try:
        return tokenizer(text, add_special_tokens=False)["input_ids"]
    except Exception:
        return None


def render(tokenizer, conversation: dict) -> list[int] | None:
    """None when the template, or Python inside it, raises."""
    messages = [as_transformers(message) for message in conversation["messages"]]
    tools = [json.loads(tool) for tool in TOOLSETS[conversation["toolset"]]] or None
    options = {"add_generation_prompt": conversation["addGenerationPrompt"], **conversation["kwargs"]}
    try:
        if all(message["content"] is not None for message in messages):
            return tokenizer.apply_chat_template(messages, tools=tools, tokenize=True, return_dict=False, **options)
        # apply_chat_template leaves null content out; templates that ask for null need what is below it.
        template = tokenizer.get_chat_template(tools=tools)
        rendered, _ = chat_template_utils.render_jinja_template(
            [messages], tools=tools, chat_template=template, **{**tokenizer.special_tokens_map, **options}
        )
        return tokenizer(rendered[0], add_special_tokens=False)["input_ids"]
    except Exception:
        return None


def write_json(file: Path, cases: list) -> None:
    """One case a line. Half a surrogate pair has no UTF-8, so everything but ASCII is escaped."""
    file.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n", encoding="utf-8")


def write_ids(file: Path, cases: list[list[int] | None]) -> None:
    """One case a line: how many ids it shares with the start of the line before, a colon, and the ids after these. `!`: Python raised."""
    lines, before = [], []
    for ids in cases:
        if ids is None:
            lines.append(REFUSED)
            continue
        shared = next((i for i, (a, b) in enumerate(zip(before, ids)) if a != b), min(len(before), len(ids)))
        lines.append(f"{shared}:{' '.join(map(str, ids[shared:]))}")
        before = ids
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    folder, now, *named = sys.argv[1:]
    main(Path(folder), int(now), {name: Path(path) for name, path in (pair.split("=", 1) for pair in named)})
