import type { Difference } from './peers.ts';

/** What our client does otherwise than the official one, or a server otherwise than it did, by step and with the reason. */
type Differences = Readonly<Record<string, Difference>>;

const having =
  (fields: object) =>
  (ours: unknown): unknown => ({ ...(ours as object), ...fields });

const UNSUPPORTED: Difference = { kind: 'ours answered', reason: 'a call that the server does not have is told as such, not thrown' };

const NAMES_MODEL: Difference = { kind: 'values', reason: 'ours names the model that it loaded into', view: having({ model_id: null }) };

const ALL_SKYRL: Differences = {
  load_state_on_fresh_client: NAMES_MODEL,
  compute_logprobs: {
    kind: 'values',
    reason: 'the server leaves position 0 out; ours has an entry for every token',
    view: (ours) => (ours as unknown[]).slice(1),
  },
  publish_checkpoint: UNSUPPORTED,
};

export const SKYRL: Differences = {
  ...ALL_SKYRL,
  get_info: {
    kind: 'values',
    reason: 'the official client fills in adamw, ours repeats the base model and does not guess',
    view: having({ optimizer_config: { type: 'adamw' }, model_name: null }),
  },
  weights_info: {
    kind: 'values',
    reason: 'the official client fills in adamw',
    view: having({ optimizer_config: { type: 'adamw' } }),
  },
  create_training_client_from_state: {
    kind: 'values',
    reason: 'the server cannot create from state in one call; ours then creates and loads',
    like: 'forward_after_load_state',
  },
  create_training_client_from_state_havingoptimizer: {
    kind: 'values',
    reason: 'as before',
    like: 'forward_after_load_state',
  },
  set_checkpoint_ttl: UNSUPPORTED,
  service_client_close: { kind: 'ours answered', reason: 'a session that cannot be finished ends by silence' },
};

/** Recorded with older official clients, which had other calls. */
const OLDER_CLIENT: Differences = {
  checkpoint_archive_url: { kind: 'ours refused', reason: 'a call of older clients; ours saves external weights instead' },
  service_client_close: { kind: 'ours answered', reason: 'the older client does not finish its session' },
  sample_topk_sample_logprobs: { kind: 'ours answered', reason: 'the older client does not know the option' },
};

export const SKYRL_TX: Differences = {
  ...ALL_SKYRL,
  ...OLDER_CLIENT,
  set_checkpoint_ttl: { kind: 'ours answered', reason: 'the older client does not have the call' },
};

/** Its starting weights are drawn anew in every run, whatever seed is asked for: after an update no two runs agree. */
const UNSEEDED: Difference = { kind: 'values', reason: 'the server ignores the seed of a new model' };
const asInOurs = (step: string): Difference => ({ ...UNSEEDED, reason: `${UNSEEDED.reason}; agrees with our ${step}`, likeOwn: step });

export const HATCHERY: Differences = {
  ...OLDER_CLIENT,
  forward_cross_entropy_after: UNSEEDED,
  forward_backward_importance_sampling: UNSEEDED,
  forward_backward_ppo: UNSEEDED,
  sample_greedy: UNSEEDED,
  sample_seed42_n2: UNSEEDED,
  sample_seed42_n2_again: asInOurs('sample_seed42_n2'),
  sample_stop_token_ids: UNSEEDED,
  sample_stop_strings: asInOurs('sample_greedy'),
  sample_top_k_top_p: UNSEEDED,
  sample_prompt_logprobs_topk: UNSEEDED,
  compute_logprobs: UNSEEDED,
  forward_after_load_state: UNSEEDED,
  create_training_client_from_state: asInOurs('forward_after_load_state'),
  create_training_client_from_state_with_optimizer: asInOurs('forward_after_load_state'),
  sample_base_model: { kind: 'ours answered', reason: 'a sampling session given as a future is followed by ours alone' },
  list_checkpoints: { kind: 'ours answered', reason: 'ours takes a checkpoint without a time' },
  load_state_on_fresh_client: NAMES_MODEL,
  load_state_with_optimizer_not_first: NAMES_MODEL,
};
