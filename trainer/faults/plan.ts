import { z } from 'zod';
import { StateError } from '../service/failures.ts';
import { type Fault, faultSchema } from './fault-schemas.ts';

/** What a future computes, as clients name it in `X-Tinker-Request-Type`. */
const requestTypes = [
  'CreateModel',
  'Forward',
  'ForwardBackward',
  'OptimStep',
  'SaveWeights',
  'SaveWeightsForSampler',
  'SaveWeightsExternal',
  'LoadWeights',
  'UnloadModel',
  'Sample',
] as const;
export type RequestType = (typeof requestTypes)[number];

/** Calls with a path of one form; those with an id in their path are meant by a pattern with `*`. */
const CALLS = [
  ...['client/config', 'client/dynamic_config', 'auth/token', 'create_session', 'session_heartbeat', 'telemetry', 'healthz'],
  ...['get_server_capabilities', 'create_model', 'get_info', 'forward_backward', 'optim_step', 'save_weights'],
  ...['save_weights_for_sampler', 'save_weights_external', 'load_weights', 'unload_model', 'create_sampling_session'],
  ...['join_sampling_session', 'asample', 'retrieve_future', 'retrieve_futures', 'cancel_future', 'weights_info', 'copy_weights'],
  ...['training_runs', 'checkpoints', 'sessions'],
];
const SAVE = 'save_weights_for_sampler';
/** Where a fault can happen, if not everywhere. `*` is allowed too. */
const PLACES: Readonly<Partial<Record<Fault['kind'], readonly string[]>>> = {
  pending: ['retrieve_future'],
  logprobs: ['retrieve_future'],
  jitter: ['retrieve_future'],
  extra_logprob: ['retrieve_future'],
  omit_logprobs: ['retrieve_future'],
  json_result: ['retrieve_future'],
  drop_moments: ['load_weights'],
  context_limit: ['asample', 'forward_backward'],
  named_save_does_not_persist: [SAVE],
};
/** A property of the service rather than an accident: it holds unless `times` says otherwise. */
const LASTING: readonly Fault['kind'][] = ['context_limit'];

const ruleSchema = z
  .strictObject({
    /** Path of the call below `/api/v1/`; `*` stands for any characters. */
    on: z
      .string()
      .refine((on) => on.includes('*') || CALLS.includes(on), { error: `is no call; calls: ${CALLS.join(', ')}; or a pattern with *` }),
    /** Only calls and futures of this type. */
    for: z.enum(requestTypes).optional(),
    /** From which matching request on, counted from 1. */
    nth: z.number().int().min(1).default(1),
    /** How often in all. */
    times: z.union([z.number().int().min(1), z.literal('always')], { error: 'is a count from 1 on, or "always"' }).optional(),
    /** Of each matching request to be hit; drawn by `seed`. */
    probability: z.number().gt(0).max(1).optional(),
    /** Of everything drawn in this rule. */
    seed: z.number().int().min(0).max(0xffff_ffff).default(0),
    fault: faultSchema,
  })
  .refine(({ on, fault }) => on === '*' || (PLACES[fault.kind]?.includes(on) ?? true), {
    path: ['on'],
    error: ({ input }) => `${kindOf(input)} happens on ${(PLACES[kindOf(input) as Fault['kind']] ?? []).join(' or ')} only`,
  })
  .transform((rule) => ({ ...rule, times: rule.times ?? (LASTING.includes(rule.fault.kind) ? ('always' as const) : 1) }));

const planSchema = z.array(ruleSchema);

export type Rule = z.infer<typeof ruleSchema>;
/** A rule as it is written. */
export type RuleInput = z.input<typeof ruleSchema>;
export type Plan = readonly Rule[];

/** Checks a plan: a list of rules, or what `GET /faults` answers. @throws StateError naming the source, the entry and the field of every mistake */
export function parsePlan(value: unknown, source: string): Plan {
  const parsed = planSchema.safeParse(isReport(value) ? value.rules.map(withoutCounters) : value);
  if (parsed.success) return parsed.data;
  throw new StateError(parsed.error.issues.map((issue) => `${source}: ${problem(issue)}`).join('\n'));
}

function isReport(value: unknown): value is { readonly rules: readonly unknown[] } {
  return typeof value === 'object' && value !== null && 'rules' in value && Array.isArray(value.rules);
}

function withoutCounters(rule: unknown): unknown {
  if (typeof rule !== 'object' || rule === null) return rule;
  const { matched: _, fired: __, ...rest } = rule as Readonly<Record<string, unknown>>;
  return rest;
}

/** Reads a plan's text. @throws StateError as `parsePlan`, or when it is no JSON */
export function readPlan(text: string, source: string): Plan {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new StateError(`${source}: is no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  return parsePlan(value, source);
}

/** `rule 2, fault.ms: what is wrong`; rules count from 1. */
function problem({ path: [entry, ...field], message }: z.core.$ZodIssue): string {
  if (entry === undefined) return `the plan: ${message}`;
  return `rule ${Number(entry) + 1}${field.length > 0 ? `, ${field.map(String).join('.')}` : ''}: ${message}`;
}

function kindOf(rule: unknown): string {
  return (rule as { readonly fault: { readonly kind: string } }).fault.kind;
}
