import { trainingBody } from '../../../services/tinker/training/training-body.ts';
import { encodeForwardBackwardRequest, jsonForwardBackwardBody } from '../../../services/tinker/wire/index.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference, EXACT } from '../same.ts';
import { type JsonOutput, type JsonSample, outputJson, sampleJson, tidyOutput, tidySample } from '../tinker/result-json.ts';
import { exchangeSchema } from '../tinker/scripted-server.ts';
import { binary, type Exchange, resultOf } from '../tinker/session.ts';
import { sessionCall } from '../tinker/session-call.ts';
import { configV2, type JsonRequest, mapValues, requestJson, requestOf, tidyRequest } from '../tinker/wire-json.ts';
import type { VectorFamily } from '../vector-file.ts';
import { checkCalls, unspokenFinding } from './json-calls.ts';

/** The bodies of before protobuf. */
type JsonBody = { readonly model_id: string; readonly seq_id: number } & Readonly<Record<string, unknown>>;
type JsonInput = {
  readonly data: readonly {
    readonly model_input: { readonly chunks: readonly { readonly tokens: readonly number[] }[] };
    readonly loss_fn_inputs: JsonRequest['data'][number]['loss_fn_inputs'];
  }[];
  readonly loss_fn: string;
  readonly loss_fn_config?: Readonly<Record<string, number>> | null;
};

/** Bodies of training calls, results of losses and samples, and whole calls where the recorded client speaks as ours does. */
async function exchange(recorded: Exchange, _: never, family: VectorFamily): Promise<Finding> {
  const sent = await (recorded.req_decoded === undefined ? jsonBodyDiffers(recorded) : protobufBodyDiffers(recorded));
  const got = resultDiffers(recorded);
  const found = sent ?? got ?? null;
  if (found !== null) return { difference: found };
  if (sent === undefined) {
    const unspoken = unspokenFinding(exchangeSchema.parse(recorded));
    if (unspoken !== null) return unspoken;
  }
  const call = sessionCall(recorded, family);
  if (call !== null) return checkCalls(call);
  const isCompared = sent !== undefined || got !== undefined;
  return isCompared ? null : { notApplicable: 'no loss, no sample, and no answered call of a client that speaks as ours does' };
}

/** Read as recorded, and written and read again. Undefined, here and below: there is nothing of the kind. */
async function protobufBodyDiffers({ path, req, req_decoded }: Exchange): Promise<string | null | undefined> {
  const bytes = binary(req);
  if (bytes === null) return undefined;
  const decoded = req_decoded as JsonRequest;
  const ours = await trainingBody({ bodies: 'protobuf' }, requestOf(decoded));
  const asOurs = { ...decoded, loss_fn_config_v2: configV2(decoded) };
  return (
    difference(path.replace('/api/v1/', ''), ours.path, EXACT, 'path') ??
    difference(tidyRequest(decoded), requestJson(bytes), EXACT, 'req_decoded') ??
    difference(tidyRequest(asOurs), requestJson(encodeForwardBackwardRequest(requestOf(decoded))), EXACT, 'our request')
  );
}

async function jsonBodyDiffers({ path, req }: Exchange): Promise<string | null | undefined> {
  const body = req as JsonBody | null;
  const name = ['forward_input', 'forward_backward_input'].find((key) => body?.[key] !== undefined);
  if (body === null || name === undefined) return /\/forward(_backward)?$/.test(path) ? 'not a training body' : undefined;
  const { data, loss_fn_config: config, ...others } = body[name] as JsonInput;
  const request = requestOf({
    model_id: body.model_id,
    seq_id: body.seq_id,
    forward_only: name === 'forward_input',
    loss_fn: others.loss_fn,
    loss_fn_config: {},
    loss_fn_config_v2: mapValues(config ?? {}, (value) => (typeof value === 'number' ? { number: value } : { text: value })),
    data: data.map(({ model_input, loss_fn_inputs }) => ({ model_input: model_input.chunks.map(named), loss_fn_inputs })),
  });
  const input = {
    ...others,
    data: data.map(({ model_input, ...rest }) => ({ ...rest, model_input: { ...model_input, chunks: model_input.chunks.map(named) } })),
    ...(config == null ? {} : { loss_fn_config: config }),
  };
  const ours = await trainingBody({ bodies: 'json' }, request);
  return (
    difference(path.replace('/api/v1/', ''), ours.path, EXACT, 'path') ??
    difference({ ...body, [name]: input }, JSON.parse(jsonForwardBackwardBody(request)), EXACT, 'our request')
  );
}

/** The oldest client leaves the type of a text chunk out. */
function named<Chunk extends { readonly tokens: readonly number[] }>(chunk: Chunk): Chunk & { readonly type: string } {
  return { type: 'encoded_text', ...chunk };
}

function resultDiffers(recorded: Exchange): string | null | undefined {
  const result = resultOf(recorded);
  if (result === null) return undefined;
  const expected = recorded.res_decoded ?? recorded.res;
  return 'sample' in result
    ? difference(tidySample(expected as JsonSample), sampleJson(result.sample), EXACT, 'result')
    : difference(tidyOutput(expected as JsonOutput), outputJson(result.loss), EXACT, 'result');
}

export const tinkerSession: FamilyAdapter = { family: 'session.', isPrefix: true, kinds: { '': exchange } };
