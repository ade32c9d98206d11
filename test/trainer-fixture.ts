import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeSample, startTrainerProcess, type Trainer, type TrainerFlags, untrainedWeights, WireClient } from './trainer-process.ts';

export const STUDENT = 'stillroom/tiny-student';
export const ADAM = { learning_rate: 0.02, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0, grad_clip_norm: 0 };

export const textPrompt = (text: string) => ({
  chunks: [{ type: 'encoded_text', tokens: [...text].map((char) => char.charCodeAt(0)) }],
});

/** The service as its clients meet it: one real process, plain HTTP, one session. */
export class TrainerFixture {
  readonly state: string;
  readonly weights: string;
  readonly trainer: Trainer;
  readonly client: WireClient;
  readonly session: string;
  #models = 0;
  #samplers = 1000;
  #samples = 0;

  private constructor(state: string, weights: string, trainer: Trainer, client: WireClient, session: string) {
    this.state = state;
    this.weights = weights;
    this.trainer = trainer;
    this.client = client;
    this.session = session;
  }

  static async start(flags: Pick<TrainerFlags, 'faults' | 'env'> = {}): Promise<TrainerFixture> {
    const state = mkdtempSync(join(tmpdir(), 'trainer-service-'));
    const weights = untrainedWeights();
    const trainer = await startTrainerProcess({ state, weights, ...flags });
    const client = new WireClient(trainer.url);
    const { session_id: session } = await client.post('create_session', { tags: [] });
    return new TrainerFixture(state, weights, trainer, client, String(session));
  }

  async stop(): Promise<void> {
    await this.trainer.kill('SIGTERM');
    rmSync(this.state, { recursive: true });
    rmSync(this.weights, { recursive: true });
  }

  /** The number that the next model of the session takes. */
  nextModelSeqId(): number {
    this.#models += 1;
    return this.#models;
  }

  async createModel(): Promise<string> {
    const lora = { rank: 4, seed: 1 };
    const body = { session_id: this.session, model_seq_id: this.nextModelSeqId(), base_model: STUDENT, lora_config: lora };
    return String(((await this.client.call('create_model', body)) as Record<string, unknown>).model_id);
  }

  async sampler(source: Readonly<Record<string, string>>): Promise<string> {
    this.#samplers += 1;
    const body = { session_id: this.session, sampling_session_seq_id: this.#samplers, ...source };
    return String((await this.client.post('create_sampling_session', body)).sampling_session_id);
  }

  /** An asample body with a sequence number of its own. */
  sampleBody(samplerId: string, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
    this.#samples += 1;
    return {
      sampling_session_id: samplerId,
      seq_id: this.#samples,
      num_samples: 1,
      prompt: textPrompt('files key sun\n$ '),
      sampling_params: { max_tokens: 12, seed: 7, stop: [], temperature: 1, top_k: -1, top_p: 1 },
      ...more,
    };
  }

  /** Log-probability of every character of a text; NaN at 0. */
  async scores(samplerId: string, text: string): Promise<readonly number[]> {
    const more = { prompt: textPrompt(text), sampling_params: { max_tokens: 1, temperature: 1 }, prompt_logprobs: true };
    return decodeSample(await this.client.call('asample', this.sampleBody(samplerId, more))).promptLogprobs ?? [];
  }
}
