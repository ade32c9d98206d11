"""Calls of the official Tinker SDK besides training and plain sampling; prints what it got as one JSON object.

TINKER_BASE_URL and TINKER_API_KEY name the service; standard input holds {text} as JSON (token ids).
"""

import json
import sys

import tinker
from tinker import types

BASE = "stillroom/tiny-student"


def tensor(data: list, dtype: str, shape: list[int], **sparse: list[int]) -> types.TensorData:
    return types.TensorData(data=data, dtype=dtype, shape=shape, **sparse)


def refusal(call) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def scored(answer) -> dict:
    target, alternatives = answer.target_prompt_logprobs, answer.prompt_alt_tokens
    return {
        "tokens": list(answer.sequences[0].tokens),
        "stop_reason": answer.sequences[0].stop_reason,
        "target": None if target is None else [[None if value != value else value for value in target.data], list(target.shape)],
        "alternatives": None
        if alternatives is None
        else [list(alternatives.tokens.data), list(alternatives.logprobs.data), list(alternatives.tokens.shape)],
    }


def sampling(service: tinker.ServiceClient, text: list[int]) -> dict:
    client = service.create_sampling_client(base_model=BASE).result()
    prompt = types.ModelInput.from_ints(text)
    rows = len(text) - 1

    def ask(params: dict, **more) -> dict:
        return scored(client.sample(prompt, 1, types.SamplingParams(seed=3, **params), **more).result())

    plain = ask({"max_tokens": 24, "stop": []})
    word = "".join(chr(token) for token in plain["tokens"][5:8])
    dense = tensor([-1, *([7] * (2 * rows - 1))], "int64", [rows, 2])
    sparse = tensor([50, 51], "int64", [rows, 3], sparse_crow_indices=[0, *([1] * (rows - 1)), 2], sparse_col_indices=[2, 0])
    return {
        "plain": plain,
        "stopped": {"word": word, **ask({"max_tokens": 24, "stop": ["~~~~~", word]})},
        "best": ask({"max_tokens": 12, "stop": [], "top_k": 1}),
        "greedy": ask({"max_tokens": 12, "stop": [], "temperature": 0.0}),
        "dense": ask({"max_tokens": 1}, target_prompt_logprobs=dense),
        "sparse": ask({"max_tokens": 1}, target_prompt_logprobs=sparse),
        "alternatives": ask({"max_tokens": 1}, prompt_alt_tokens_k=4),
        "scores": client.compute_logprobs(prompt).result(),
        "last": client.compute_logprobs(prompt, prompt_logprobs_last_n=2).result(),
    }


def training(service: tinker.ServiceClient, text: list[int]) -> dict:
    student = service.create_lora_training_client(base_model=BASE, rank=4, seed=1, user_metadata={"purpose": "extras"}).result()
    tokens, targets = text[:-1], text[1:]
    n = len(tokens)
    whole = types.ModelInput.from_ints(tokens)

    def loss(**inputs: types.TensorData):
        return student.forward([types.Datum(model_input=whole, loss_fn_inputs=inputs)], "cross_entropy").result()

    pairs = [token for target in targets for token in (target, 65)]
    weights = [weight for _ in targets for weight in (0.75, 0.25)]
    crow, col = [2 * i for i in range(n + 1)], [0, 1] * n
    dense = loss(target_tokens=tensor(pairs, "int64", [n, 2]), weights=tensor(weights, "float32", [n, 2]))
    sparse = loss(
        target_tokens=tensor(pairs, "int64", [n, 2], sparse_crow_indices=crow, sparse_col_indices=col),
        weights=tensor(weights, "float32", [n, 2], sparse_crow_indices=crow, sparse_col_indices=col),
    )
    one = loss(target_tokens=tensor(targets, "int64", [n]))
    refused = {
        "mask": refusal(lambda: loss(target_tokens=tensor(targets, "int64", [n]), mask=tensor([1.0] * n, "float32", [n]))),
        "length": refusal(lambda: loss(target_tokens=tensor(targets[1:], "int64", [n - 1]))),
    }
    snapshot = student.save_weights_for_sampler("snapshot").result().path
    frozen, unnamed = service.create_sampling_client(model_path=snapshot).result(), student.save_weights_and_get_sampling_client().result()
    prompt = types.ModelInput.from_ints(text)
    before = [frozen.compute_logprobs(prompt).result(), unnamed.compute_logprobs(prompt).result()]
    data = [types.Datum(model_input=whole, loss_fn_inputs={"target_tokens": tensor(targets, "int64", [n])})]
    student.forward_backward(data, "cross_entropy").result()
    student.optim_step(types.AdamParams(learning_rate=1e-2)).result()
    moved = student.forward(data, "cross_entropy").result().loss_fn_outputs[0]["logprobs"].tolist()
    after = [frozen.compute_logprobs(prompt).result(), unnamed.compute_logprobs(prompt).result()]
    refused["sampler as state"] = refusal(lambda: service.create_training_client_from_state(snapshot).result())
    return {
        "dense": [dense.metrics["loss:sum"], list(dense.loss_fn_outputs[0]["logprobs"].data), dense.loss_fn_outputs[0]["logprobs"].shape],
        "sparse": [sparse.metrics["loss:sum"], list(sparse.loss_fn_outputs[0]["logprobs"].data), sparse.loss_fn_outputs[0]["logprobs"].shape],
        "one": one.loss_fn_outputs[0]["logprobs"].tolist(),
        "refused": refused,
        "before": before,
        "after": after,
        "moved": moved,
        "model": student.model_id,
        "snapshot": snapshot,
        **checkpoints(service, student, snapshot),
    }


def checkpoints(service: tinker.ServiceClient, student, snapshot: str) -> dict:
    rest = service.create_rest_client()
    state = student.save_state("state").result().path

    def listed() -> dict:
        found = rest.list_checkpoints(student.model_id).result().checkpoints
        return {each.checkpoint_id: [each.public, each.expires_at is not None] for each in found}

    steps = [listed()]
    rest.publish_checkpoint_from_tinker_path(state).result()
    rest.set_checkpoint_ttl_from_tinker_path(snapshot, 7200).result()
    steps.append(listed())
    rest.unpublish_checkpoint_from_tinker_path(state).result()
    rest.set_checkpoint_ttl_from_tinker_path(snapshot, None).result()
    steps.append(listed())
    rest.delete_checkpoint_from_tinker_path(state).result()
    steps.append(listed())
    session = student.model_id.split(":")[0]
    found = rest.get_session(session).result()
    return {
        "lists": steps,
        "sessions": rest.list_sessions().result().sessions,
        "session": {"id": session, "runs": found.training_run_ids, "samplers": found.sampler_ids},
        "sampler": rest.get_sampler(found.sampler_ids[0]).result().base_model,
    }


job = json.load(sys.stdin)
client = tinker.ServiceClient()
print(json.dumps({"sampling": sampling(client, job["text"]), "training": training(client, job["text"])}))
