import { randomUUID } from 'node:crypto';
import type { CallIntent } from '../core/recordings/entry.ts';
import type { ModelRef } from '../core/run/trial.ts';
import type { CheckedSampler, Reach } from './model-checks.ts';
import type { PaidCalls } from './paid-calls.ts';
import { sampleAnswer } from './recorded-sampler.ts';
import { scoreAnswer } from './teacher.ts';

/** The models with their calls in a book. Nothing is answered from it: the checks are of the service as it is now. */
export function bookedModels(models: Reach['models'], calls: PaidCalls, student: ModelRef): Reach['models'] {
  return {
    contextLimitTokens: (model) => models.contextLimitTokens(model),
    longestWait: () => models.longestWait(),
    withSampler: (model, work) => models.withSampler(model, (sampler) => work(booked(sampler, calls, orderOf(model, student)))),
  };
}

type Order = Pick<CallIntent, 'who' | 'model'>;

function orderOf({ kind, model }: ModelRef, student: ModelRef): Order {
  const isStudent = kind === student.kind && model === student.model;
  return { who: isStudent ? 'student' : 'teacher', model };
}

function booked(sampler: CheckedSampler, calls: PaidCalls, order: Order): CheckedSampler {
  /** No call is like another. */
  const entered = (call: Pick<CallIntent, 'kind' | 'promptTokens' | 'mostSampledTokens'>) => ({ ...order, ...call, key: randomUUID() });
  return {
    async sample(request) {
      const { prompt, maxTokens } = request;
      const intent = entered({ kind: 'sample', promptTokens: prompt.length, mostSampledTokens: maxTokens });
      return kept((keep) => calls.call(intent, async () => sampleAnswer(keep(await sampler.sample(request)), false)));
    },
    async promptLogprobs(tokens, options) {
      const intent = entered({ kind: 'score', promptTokens: tokens.length, mostSampledTokens: 1 });
      const ask = () => sampler.promptLogprobs(tokens, options);
      return kept((keep) => calls.call(intent, async () => ({ ...scoreAnswer(keep(await ask())), usable: false })));
    },
  };
}

/** What was kept on the way, once `work` is done. */
async function kept<T>(work: (keep: (value: T) => T) => Promise<unknown>): Promise<T> {
  let value: T | undefined;
  await work((given) => {
    value = given;
    return given;
  });
  if (value === undefined) throw new Error('the call was not made');
  return value;
}
