"""Asks a gateway as agents do, through their own client libraries.

Standard input holds a JSON list of cases {"via", "api_base", "api_key", "request"}; standard output gets one JSON result for each: what the
client gives its agent, or the name of the error that it raises.
"""

import asyncio
import json
import os
import sys

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import litellm  # noqa: E402
import openai  # noqa: E402
from harbor.llms.lite_llm import LiteLLM  # noqa: E402

litellm.suppress_debug_info = True

MODEL_INFO = {
    "max_input_tokens": 4096,
    "max_output_tokens": 512,
    "input_cost_per_token": 0.0,
    "output_cost_per_token": 0.0,
}


def message_of(message):
    """The fields of an answer that agents read."""
    return {
        "content": message.content,
        "reasoning": getattr(message, "reasoning_content", None),
        "tool_calls": [
            {"id": call.id, "name": call.function.name, "arguments": call.function.arguments} for call in message.tool_calls or []
        ],
    }


def answer_of(response):
    """A LiteLLM answer: what terminus-2 and OpenHands take out of it."""
    choice = response.choices[0]
    return {
        **message_of(choice.message),
        "finish_reason": choice.finish_reason,
        "token_ids": (getattr(choice, "provider_specific_fields", None) or {}).get("token_ids"),
        "prompt_token_ids": getattr(response, "prompt_token_ids", None),
        "usage": [response.usage.prompt_tokens, response.usage.completion_tokens],
    }


async def via_litellm(provider, case):
    access = {"model": f"{provider}/policy", "api_base": case["api_base"], "api_key": case["api_key"]}
    request = case["request"]
    response = await litellm.acompletion(**access, max_retries=0, **request)
    if not request.get("stream"):
        return answer_of(response)
    chunks = [chunk async for chunk in response]
    return answer_of(litellm.stream_chunk_builder(chunks, messages=request["messages"]))


async def via_terminus(case):
    """The language model of harbor's terminus-2, which collects tokens for training."""
    os.environ["HOSTED_VLLM_API_KEY"] = case["api_key"]
    model = LiteLLM("hosted_vllm/policy", api_base=case["api_base"], model_info=MODEL_INFO, collect_rollout_details=True, session_id="s-1")
    answer = await model.call(prompt=case["request"]["messages"][-1]["content"])
    return {
        "content": answer.content,
        "prompt_token_ids": answer.prompt_token_ids,
        "token_ids": answer.completion_token_ids,
        "logprobs": answer.logprobs,
    }


async def via_openai(case):
    """The official client, with its own retries."""
    request = dict(case["request"])
    client = openai.AsyncOpenAI(base_url=case["api_base"], api_key=case["api_key"], max_retries=2)
    if not request.pop("stream", False):
        response = await client.chat.completions.create(model="policy", **request)
        return {**message_of(response.choices[0].message), "finish_reason": response.choices[0].finish_reason}
    async with client.chat.completions.stream(model="policy", **request) as stream:
        async for _ in stream:
            pass
        response = await stream.get_final_completion()
    return {**message_of(response.choices[0].message), "finish_reason": response.choices[0].finish_reason}


async def result_of(case):
    via = case["via"]
    calls = {
        "hosted_vllm": lambda: via_litellm("hosted_vllm", case),
        "openai": lambda: via_litellm("openai", case),
        "terminus": lambda: via_terminus(case),
        "sdk": lambda: via_openai(case),
    }
    try:
        return await calls[via]()
    except Exception as error:  # the kind of error is the result
        return {"error": type(error).__name__, "status": getattr(error, "status_code", None)}


async def main():
    print(json.dumps([await result_of(case) for case in json.load(sys.stdin)]))


asyncio.run(main())
