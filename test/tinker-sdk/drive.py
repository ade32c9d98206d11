"""Drives the official Tinker SDK against a service and prints what it got as one JSON object.

TINKER_BASE_URL and TINKER_API_KEY name the service; standard input holds {prompt, seed, max_tokens, text} as JSON (token ids).
"""

import json
import sys

import tinker
from tinker import types


def main() -> None:
    job = json.load(sys.stdin)
    service = tinker.ServiceClient()
    print(json.dumps({"teacher": use_teacher(service, job), "student": train_student(service, job)}))


def use_teacher(service: tinker.ServiceClient, job: dict) -> dict:
    """Samples from the teacher, then scores prompt and sample with the call that the SDK has for it."""
    teacher = service.create_sampling_client(base_model="stillroom/tiny-teacher")
    params = types.SamplingParams(max_tokens=job["max_tokens"], seed=job["seed"], temperature=1.0)
    answer = teacher.sample(types.ModelInput.from_ints(job["prompt"]), num_samples=1, sampling_params=params).result()
    sequence = answer.sequences[0]
    scores = teacher.compute_logprobs(types.ModelInput.from_ints(job["prompt"] + list(sequence.tokens))).result()
    return {
        "tokens": list(sequence.tokens),
        "logprobs": list(sequence.logprobs),
        "stop_reason": sequence.stop_reason,
        "scores": scores,
    }


def train_student(service: tinker.ServiceClient, job: dict) -> dict:
    """One cross-entropy step, and the text's scores under a snapshot taken after it."""
    student = service.create_lora_training_client(base_model="stillroom/tiny-student", rank=8, seed=1)
    text = job["text"]
    datum = types.Datum(
        model_input=types.ModelInput.from_ints(text[:-1]),
        loss_fn_inputs={
            "target_tokens": types.TensorData(data=text[1:], dtype="int64", shape=[len(text) - 1]),
            "weights": types.TensorData(data=[1.0] * (len(text) - 1), dtype="float32", shape=[len(text) - 1]),
        },
    )
    before = student.forward_backward([datum], "cross_entropy")
    step = student.optim_step(types.AdamParams(learning_rate=1e-2))
    after = student.forward([datum], "cross_entropy")
    first, metrics, second = before.result(), step.result().metrics, after.result()
    state = student.save_state("sdk").result().path
    sampler_path = student.save_weights_for_sampler("sdk").result().path
    named = service.create_sampling_client(model_path=sampler_path)
    unnamed = student.save_weights_and_get_sampling_client()
    restored = service.create_training_client_from_state_with_optimizer(state)
    whole = types.ModelInput.from_ints(text)
    return {
        "info": student.get_info().model_data.tokenizer_id,
        "loss_before": first.metrics["loss:sum"],
        "loss_after": second.metrics["loss:sum"],
        "logprobs_before": first.loss_fn_outputs[0]["logprobs"].tolist(),
        "logprobs_after": second.loss_fn_outputs[0]["logprobs"].tolist(),
        "restored": restored.forward([datum], "cross_entropy").result().loss_fn_outputs[0]["logprobs"].tolist(),
        "step": metrics,
        "named": named.compute_logprobs(whole).result(),
        "unnamed": unnamed.compute_logprobs(whole).result(),
        "paths": [state, sampler_path],
    }


main()
