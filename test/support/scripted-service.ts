import type { SamplerPath } from '../../core/ids.ts';
import { FakeService, type SeenRequest, sampleReply } from '../../services/tinker/testing/fake-service.ts';

type Script = { readonly name: string; readonly turns: readonly Int32Array[]; readonly prompts: Int32Array[] };

/** The log-probability that the service gives a token: it says which token it is. */
export const logprobOf = (id: number): number => Math.fround(-1 / (1 + id));

/** A Tinker service at a real socket whose weights are scripts: each sampler path says its turns, id by id, and nothing after them. */
export class ScriptedService implements AsyncDisposable {
  readonly url: string;
  readonly #service: FakeService;
  readonly #scripts = new Map<string, Script>();
  readonly #scriptOfSampler = new Map<string, Script>();
  readonly #answers = new Map<string, Int32Array>();
  readonly #end: number;

  private constructor(service: FakeService, models: readonly string[], end: number) {
    this.url = service.url;
    this.#service = service;
    this.#end = end;
    const supported_models = models.map((model_name) => ({ model_name, max_context_length: 40_960 }));
    service.usually('get_server_capabilities', { json: { supported_models } });
    service.usually('create_sampling_session', (request) => this.#open(request));
    service.usually('asample', (request) => this.#take(request));
    service.usually('retrieve_future', (request) => this.#answer(request));
  }

  /** `end`: the id that ends a turn, said when a script is over. */
  static async start(models: readonly string[], end: number): Promise<ScriptedService> {
    return new ScriptedService(await FakeService.start(), models, end);
  }

  /** Weights that say these turns. */
  weights(name: string, turns: readonly Int32Array[]): SamplerPath {
    const path = `tinker://run/sampler_weights/${name}`;
    this.#scripts.set(path, { name, turns, prompts: [] });
    return path as SamplerPath;
  }

  /** The prompts that these weights were asked to go on from, in order. */
  prompts(path: SamplerPath): readonly Int32Array[] {
    return this.#scripts.get(path)?.prompts ?? [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service.stop();
  }

  #open({ json }: SeenRequest) {
    const script = this.#scripts.get(String(json.model_path));
    if (!script) return { status: 404, json: { detail: `no weights ${json.model_path}` } };
    const id = `sess:sample:${json.sampling_session_seq_id}`;
    this.#scriptOfSampler.set(id, script);
    return { json: { sampling_session_id: id } };
  }

  #take({ json }: SeenRequest) {
    const script = this.#scriptOfSampler.get(String(json.sampling_session_id));
    if (!script) return { status: 404, json: { detail: 'no such sampler' } };
    const { chunks } = json.prompt as { readonly chunks: readonly { readonly tokens: readonly number[] }[] };
    const turn = script.turns[script.prompts.push(Int32Array.from(chunks.flatMap(({ tokens }) => tokens))) - 1];
    const id = `${script.name}-${script.prompts.length}`;
    this.#answers.set(id, turn ?? Int32Array.of(this.#end));
    return { json: { request_id: id } };
  }

  #answer({ json }: SeenRequest) {
    const tokens = this.#answers.get(String(json.request_id));
    if (!tokens) return { status: 404, json: { detail: 'Future not found' } };
    return sampleReply({ sequences: [{ tokens, logprobs: Float32Array.from(tokens, logprobOf), stopReason: 'stop', topk: null }] });
  }
}
