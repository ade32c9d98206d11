"""Conversations of agents, by a seeded generator, in the shape of the gateway's own messages."""

import json
import random

from make_texts import LOOK_ALIKES, PIECES

SYSTEMS = [
    "You are a careful coding agent.",
    "  Leading and trailing space matter.  \n",
    "",
    "Réponds en français. 日本語も可。\n\n# Rules\n- be brief",
]

TOOLSETS = [
    [],
    ['{"type": "function", "function": {"name": "bash", "description": "Run a command.", "parameters": {"type": "object", "properties": '
     '{"command": {"type": "string", "description": "what to run"}}, "required": ["command"]}}}'],
    ['{"type":"function","function":{"name":"edit","description":"  Edit a file.\\n","parameters":{"type":"object","properties":'
     '{"path":{"type":"string"},"line":{"type":"integer","minimum":-9007199254740993},"scale":{"type":["number","null"],'
     '"maximum":1.0,"multipleOf":1e-7},"10":{"type":"boolean","default":false},"2":{"type":"string","description":"Größe “x”"},'
     '"more":{"type":"object","properties":{"deep":{"type":"array","items":{"type":"string"},"default":[]}}}},"required":["path"]}}}',
     '{"type": "function", "function": {"name": "noop", "description": "Nothing.", "parameters": {"type": "object", "properties": {}}}}'],
    ['{"type":"function","function":{"name":"scale","description":"Defaults that are numbers.","parameters":{"type":"object","properties":'
     '{"by":{"type":"number","default":1.0,"enum":[1.0,2.50,1e20,1e-7,null]},"times":{"type":"integer","default":12345678901234567890}}}}}'],
    ['{"type": "function", "function": {"description": "No parameters at all.", "name": "ping", "strict": true}}'],
    ['{"type":"function","function":{"name":"search","description":"<b>find</b> & \'quote\' \\"it\\"","parameters":{"properties":'
     '{"q":{"type":"string","enum":["a","b"],"description":"query\\nin lines"},"limit":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null},'
     '"opts":{"type":"object","additionalProperties":true,"default":{"x":true,"y":[1,null]}}},"type":"object","required":["q"]}}}'],
]

ARGUMENTS = [
    '{"command": "ls -la"}',
    '{"path":"a.txt","line":1,"scale":1.0}',
    "{}",
    '{ "q" : "日本 \\u00e9 \\ud83d\\ude00 <b> & \\"x\\"" , "limit" : null }',
    '{"b": true, "10": 1, "2": false, "big": 12345678901234567890123, "e": 1E5, "t": 1e-7, "n": -0.0, "h": 1e400}',
    '{"nested": {"list": [1, 2.50, "three", null, {"k": []}], "empty": {}}, "text": "line1\\nline2\\ttab"}',
    '{"command": "printf \'<|im_end|>\' </tool_call>"}',
    '{"a": 1, "a": 2}',
    '{"i": 100000000000000000000, "f": 123456789012345680.0, "z": -0, "g": 0.0001, "s": "  spaces  "}',
]

BROKEN_ARGUMENTS = ['{"command": "ls', "[1, 2]", '"text"', "", "not json", "null"]

CONTENTS = PIECES + ["", "   ", "\n\nblank lines around\n\n", "  indented\n    more \n", "\n  \u00a0x\u3000\n", "ok", "<think>in content</think>\n\nanswer", "a</think>b", "0", "False"]


def make_conversations() -> list[dict]:
    rng = random.Random(47)
    made = [plain(rng) for _ in range(90)]
    made += [agent(rng, most_calls=1) for _ in range(140)]
    made += [agent(rng, most_calls=3) for _ in range(40)]
    made += [odd(rng) for _ in range(30)]
    # Neighbours share their beginning, which keeps the files of expected ids small.
    made.sort(key=lambda c: (c["toolset"], c["messages"][0]["content"] if c["messages"][0]["role"] == "system" else ""))
    return made


def plain(rng: random.Random) -> dict:
    messages = start(rng)
    for _ in range(rng.randint(0, 2)):
        messages += [answer(rng), user(rng)]
    return finish(rng, messages, toolset=rng.choice([0, 0, 0, 1]))


def agent(rng: random.Random, most_calls: int) -> dict:
    messages = start(rng)
    for _ in range(rng.randint(1, 3)):
        call = answer(rng, calls=rng.randint(1, most_calls))
        if rng.random() < 0.5 or ("reasoning" in call and rng.random() < 0.8):
            call["content"] = ""
        messages.append(call)
        messages += [tool(rng, made["id"]) for made in call["toolCalls"]]
        if rng.random() < 0.3:
            messages += [answer(rng), user(rng)]
    if rng.random() < 0.4:
        messages.append(answer(rng))
    return finish(rng, messages, toolset=rng.choice([1, 1, 1, 2, 2, 3, 4, 5, 5]))


def odd(rng: random.Random) -> dict:
    """Orders and forms that some templates refuse."""
    kind = rng.choice(["broken", "two users", "late system", "no user", "tool first", "last assistant"])
    messages = start(rng)
    if kind == "broken":
        call = answer(rng, calls=1)
        call["toolCalls"][0]["arguments"] = rng.choice(BROKEN_ARGUMENTS)
        messages += [call, tool(rng, call["toolCalls"][0]["id"])]
    elif kind == "two users":
        messages += [user(rng), user(rng)]
    elif kind == "late system":
        messages += [answer(rng), {"role": "system", "content": rng.choice(SYSTEMS)}, user(rng)]
    elif kind == "no user":
        messages = [{"role": "system", "content": rng.choice(SYSTEMS)}, answer(rng)]
    elif kind == "tool first":
        messages.append(tool(rng, "call00000"))
    else:
        messages.append(answer(rng))
    return finish(rng, messages, toolset=rng.choice([0, 1, 2]))


def start(rng: random.Random) -> list[dict]:
    system = [{"role": "system", "content": rng.choice(SYSTEMS)}] if rng.random() < 0.7 else []
    return [*system, user(rng)]


def user(rng: random.Random) -> dict:
    content = rng.choice(CONTENTS)
    return {"role": "user", "content": content + rng.choice(LOOK_ALIKES) if rng.random() < 0.2 else content}


def answer(rng: random.Random, calls: int = 0) -> dict:
    message = {"role": "assistant", "content": rng.choice(CONTENTS)}
    if rng.random() < 0.5 - 0.15 * calls:
        message["reasoning"] = rng.choice(["Let me think.", "", "\nfirst\n\nsecond\n", "因为… so 1 < 2", "<think>nested</think>"])
    if calls:
        names = ["bash", "edit", "noop", "ping", "search"]
        message["toolCalls"] = [
            {"id": f"call{rng.randrange(10**5):05}", "name": rng.choice(names), "arguments": rng.choice(ARGUMENTS)} for _ in range(calls)
        ]
        if rng.random() < 0.3:
            message["argumentsAs"] = "text"
        if rng.random() < 0.2:
            message["emptyContentAs"] = "null"
    return message


def tool(rng: random.Random, call_id: str) -> dict:
    content = rng.choice(CONTENTS)
    return {"role": "tool", "content": content + rng.choice(LOOK_ALIKES) if rng.random() < 0.2 else content, "toolCallId": call_id}


def finish(rng: random.Random, messages: list[dict], toolset: int) -> dict:
    kwargs = rng.choice([{}] * 6 + [{"enable_thinking": False}, {"enable_thinking": True}])
    return {"messages": messages, "toolset": toolset, "addGenerationPrompt": rng.random() < 0.75, "kwargs": kwargs}


def as_transformers(message: dict) -> dict:
    """The message as an OpenAI client would hand it over; `template/input.ts` makes the same of it."""
    made = {"role": message["role"], "content": message["content"]}
    if message["content"] == "" and message.get("emptyContentAs") == "null":
        made["content"] = None
    if "reasoning" in message:
        made["reasoning_content"] = message["reasoning"]
    if "toolCalls" in message:
        as_text = message.get("argumentsAs") == "text"
        made["tool_calls"] = [
            {"id": call["id"], "type": "function",
             "function": {"name": call["name"], "arguments": call["arguments"] if as_text else parsed(call["arguments"])}}
            for call in message["toolCalls"]
        ]
    if "toolCallId" in message:
        made["tool_call_id"] = message["toolCallId"]
    return made


def parsed(arguments: str):
    """Text that is no JSON object stays text."""
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments
    return value if isinstance(value, dict) else arguments
