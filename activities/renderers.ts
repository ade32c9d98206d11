import { createHash } from 'node:crypto';
import { isTinyModel, OWN_TEMPLATE, rendererChoice, TINY_RENDERER } from '../core/config/index.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { type ChatRenderer, rendererFor } from '../services/gateway/index.ts';
import { loadTokenizer } from '../services/gateway/tokenizer/native.ts';
import type { Tokenizer } from '../services/gateway/tokenizer/tokenizer.ts';
import { type FileDigests, fileDigests, type ModelFiles } from '../services/hub/index.ts';
import { type LoadRenderer, loadModelRenderer, RendererRefused } from './model-renderer.ts';
import { Newest } from './newest.ts';
import type { RunRecord } from './run-records.ts';
import { dateOf, pinFiles, pinOf } from './tokenizer-pins.ts';

/** What is needed of a run to render for it. */
export type RenderedRun = Pick<RunRecord, 'runId' | 'config'>;

/** The renderer of a model of a run. @throws ModelFilesUnavailable, TokenizerChanged, RendererRefused */
export type RendererOf = (run: RenderedRun, model: string) => Promise<ChatRenderer>;

/** Runs and models that a worker keeps the renderers of, and vocabularies in memory, each some hundred megabytes. */
const MOST_RENDERERS = 32;
const MOST_TOKENIZERS = 4;

export type RenderersDeps = {
  readonly files: Pick<ModelFiles, 'find'>;
  readonly objects: ObjectStore;
  readonly now?: () => number;
  readonly load?: LoadRenderer;
  readonly tokenizerIn?: (folder: string, name: string) => Promise<Tokenizer>;
};

/**
 * The renderers of this worker. A model is rendered with its own tokenizer and chat template, and with the switches that the config's name for
 * it stands for; what a run began with, it goes on with, on every worker. Those who ask at once share one load, and a load that failed is
 * tried again by the next.
 */
export class Renderers {
  private readonly deps: Required<RenderersDeps>;
  private readonly ofRuns = new Newest<Promise<ChatRenderer>>(MOST_RENDERERS);
  private readonly ofContent = new Newest<Promise<ChatRenderer>>(MOST_RENDERERS);
  private readonly tokenizers = new Newest<Promise<Tokenizer>>(MOST_TOKENIZERS);

  constructor(deps: RenderersDeps) {
    this.deps = { now: Date.now, load: loadModelRenderer, tokenizerIn: loadTokenizer, ...deps };
  }

  readonly of: RendererOf = (run, model) => this.ofRuns.get(JSON.stringify([run.runId, model]), () => this.find(run, model));

  private async find({ runId, config }: RenderedRun, model: string): Promise<ChatRenderer> {
    const name = config.rollout.renderers[model];
    if (isTinyModel(model) || name === TINY_RENDERER) return tinyRenderer(name, model);
    const choice = name === undefined ? { families: null, ...OWN_TEMPLATE } : rendererChoice(name);
    if (choice === null) throw new RendererRefused(`there is no renderer "${name}": correct rollout.renderers for ${model}`);
    const { files, objects, load, now } = this.deps;
    const found = await files.find(model, { commit: (await pinOf(objects, runId, model))?.commit ?? null });
    const digests = await fileDigests(found.folder);
    await pinFiles(objects, runId, model, found, digests);
    const digest = digestOf(digests);
    const nowMs = await dateOf(objects, runId, now());
    return this.ofContent.get(digestOf([model, digest, name, nowMs]), async () => {
      const tokenizer = await this.tokenizer(model, found.folder, digests);
      return load({ model, name, folder: found.folder, digest, choice, nowMs, tokenizer });
    });
  }

  /** One for all models that have the same files, student and teacher among them. */
  private tokenizer(model: string, folder: string, { 'tokenizer.json': tokenizer, 'tokenizer_config.json': config }: FileDigests) {
    return this.tokenizers.get(digestOf([tokenizer, config]), () => this.deps.tokenizerIn(folder, model));
  }
}

const digestOf = (value: unknown) => createHash('sha256').update(JSON.stringify(value)).digest('hex');

/** Ids of one vocabulary mean nothing to a model of another, and no check of what a service answers would find that out. */
function tinyRenderer(name: string | undefined, model: string): ChatRenderer {
  if (!isTinyModel(model))
    throw new RendererRefused(
      `rollout.renderers gives ${model} the renderer "${TINY_RENDERER}", which is that of the embedded tiny models alone. ` +
        'Leave the name out: then the model has its own tokenizer and template',
    );
  if (name !== undefined && name !== TINY_RENDERER)
    throw new RendererRefused(
      `rollout.renderers gives ${model} the renderer "${name}", but the embedded tiny models have "${TINY_RENDERER}" alone. Leave the name out`,
    );
  return rendererFor({ name: TINY_RENDERER, model });
}
