import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import type { SamplerPath, StatePath } from '../../../core/ids.ts';
import { priorSpendUsd, SpendUnreadable, spendOfLedger, spendOfRows } from '../../../core/measures/recorded-spend.ts';
import { HandoffRefused, HOSTED_SERVING_ENDPOINT, handoffToml, modelsAgent } from '../../../core/promotion/handoff.ts';
import { type CheckpointBook, NO_CHECKPOINTS, resumePoint, withCheckpoint } from '../../../core/training/checkpoints.ts';
import { isStoreName, StoreError } from '../../../services/stores/version-refs.ts';
import { VersionStore } from '../../../services/stores/version-store.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference } from '../same.ts';

const compare = (expected: unknown, actual: unknown): Finding => {
  const found = difference(expected, actual);
  return found === null ? null : { difference: found };
};

async function inFolder<T>(work: (root: string) => Promise<T>): Promise<T> {
  const root = await mkdtemp(join(tmpdir(), 'vector-store-'));
  try {
    return await work(root);
  } finally {
    await rm(root, { recursive: true });
  }
}

async function orKind(work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StoreError) return { error: error.kind };
    throw error;
  }
}

type Tree = Record<string, { dirs: string[]; aliases_toml: string | null }>;
function resolve(input: { tree: Tree; name: string; ref: string | null }, expected: unknown): Promise<Finding> {
  return inFolder(async (root) => {
    for (const [name, { dirs, aliases_toml }] of Object.entries(input.tree)) {
      for (const dir of dirs) await mkdir(join(root, name, dir), { recursive: true });
      if (aliases_toml !== null) await writeFile(join(root, name, 'aliases.toml'), aliases_toml);
    }
    const store = new VersionStore(root, 'harness');
    return compare(expected, await orKind(async () => ({ version: (await store.resolve(input.name, input.ref)).version })));
  });
}

function name(input: { name: string }, expected: unknown): Finding {
  return compare(expected, { valid: isStoreName(input.name) });
}

type Op = { op: string; name: string; alias?: string | null; version: number; ref: string | null };
const OPERATIONS: Record<string, (store: VersionStore, op: Op, at: { root: string; index: number }) => Promise<unknown>> = {
  save: async (store, { name, alias }, { index }) => {
    const order = { name, key: `operation ${index}`, files: () => ({ 'card.md': '' }), ...(alias === undefined ? {} : { alias }) };
    return { version: (await store.save(order)).version };
  },
  alias: async (store, { name, alias, version }) => {
    await store.setAlias(name, alias ?? '', version);
    return { ok: true };
  },
  resolve: async (store, { name, ref }) => ({ version: (await store.resolve(name, ref)).version, name }),
  remove_version: async (_store, { name, version }, { root }) => {
    await rm(join(root, name, `v${version}`), { recursive: true });
    return { ok: true };
  },
  list: async (store) => ({ names: await store.names() }),
  aliases: async (store, { name }) => ({ aliases: Object.fromEntries(await store.aliases(name)) }),
};

function adapterOps(input: { ops: Op[] }, expected: unknown): Promise<Finding> {
  return inFolder(async (root) => {
    const store = new VersionStore(root, 'adapter');
    const results: unknown[] = [];
    for (const [index, op] of input.ops.entries()) {
      const run = OPERATIONS[op.op];
      if (!run) return { difference: `operation ${op.op} is not known` };
      results.push(await orKind(() => run(store, op, { root, index })));
    }
    return compare(expected, { results });
  });
}

type HandoffCase = { sampler_path: string; base_model: string; endpoint: string | null };
function handoff({ sampler_path, base_model, endpoint }: HandoffCase, expected: unknown): Finding {
  try {
    const given = { samplerPath: sampler_path, baseModel: base_model, endpoint: endpoint ?? HOSTED_SERVING_ENDPOINT };
    const { models } = parse(handoffToml(modelsAgent(given))) as { models: { agent: unknown } };
    return compare(expected, { models_agent: models.agent, valid_toml: true });
  } catch (error) {
    if (!(error instanceof HandoffRefused)) throw error;
    const { kind, which } = error.refusal;
    return compare(expected, { error: kind, which: kind === 'not_a_tinker_path' ? null : which });
  }
}

function spend({ metrics_jsonl, spend_json }: { metrics_jsonl: string | null; spend_json: string | null }, expected: unknown): Finding {
  const rows = readable(() => spendOfRows(metrics_jsonl ?? ''));
  const ledger = readable(() => (spend_json === null ? null : spendOfLedger(spend_json)));
  return compare(expected, {
    ...('error' in rows ? { metrics_error: rows.error } : { metrics_usd: rows.value.usd, last_step: rows.value.lastStep }),
    ...('error' in ledger ? { ledger_error: ledger.error } : { ledger_usd: ledger.value }),
    ...('error' in rows || 'error' in ledger ? {} : { prior_usd_on_resume: priorSpendUsd(rows.value, ledger.value) }),
  });
}

function readable<T>(read: () => T): { value: T } | { error: string } {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof SpendUnreadable) return { error: error.kind };
    throw error;
  }
}

type CheckpointOp = ['checkpoint', number, StatePath, SamplerPath] | ['warmup', StatePath] | ['baseline', number];
/** The tripwire's baseline lives in the run's guards, apart from its checkpoints. */
function checkpoints(input: { ops: CheckpointOp[] }, expected: unknown): Finding {
  let book: CheckpointBook = NO_CHECKPOINTS;
  let baselineStep: number | null = null;
  const after = input.ops.map((op) => {
    if (op[0] === 'baseline') baselineStep = op[1];
    else if (op[0] === 'warmup') book = { ...book, warmupState: op[1] };
    else {
      try {
        book = withCheckpoint(book, { step: op[1], statePath: op[2], samplerPath: op[3] });
      } catch (error) {
        if (error instanceof RangeError) return { error: 'invalid' };
        throw error;
      }
    }
    const { latest, nextStep, restoreFrom } = resumePoint(book);
    return {
      steps: book.checkpoints.map(({ step }) => step),
      latest: latest && { step: latest.step, state_path: latest.statePath },
      start_step_on_resume: nextStep,
      restore_from: restoreFrom,
      baseline_step: baselineStep,
    };
  });
  return compare(expected, { after_each: after });
}

export const stores: FamilyAdapter = { family: 'stores', kinds: { resolve, name, adapter_ops: adapterOps, handoff, spend, checkpoints } };
