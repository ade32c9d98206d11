/**
 * What the gateway itself costs in a long conversation: an instant sampler, an agent in a thread of its own, 200 turns to 64,000 tokens, over
 * HTTP. Beside it, in the same run, what it would cost to render and encode the whole conversation anew at each turn.
 * Run: npm run bench -- gateway [turns] [trials] [model]
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { TrialId } from '../core/ids.ts';
import { type Gateway, startGateway, type TrialRecord } from '../services/gateway/index.ts';
import type { ChatMessage } from '../services/gateway/renderer.ts';
import type { AgentJob, AgentReport } from './support/gateway/agent.ts';
import { type BenchModel, qwen3Model, scripted, tinyModel } from './support/gateway/model.ts';
import { type Work, workOf } from './support/gateway/work.ts';
import { tableOf } from './support/table.ts';

const TARGET_TOKENS = 64_000;
const CONTEXT_TOKENS = 131_072;
const AGENT = new URL('./support/gateway/agent.ts', import.meta.url);

const MODELS = [
  { name: 'tiny', make: tinyModel, tokensPerWord: 5.2 },
  { name: 'qwen3', make: qwen3Model, tokensPerWord: 1.08 },
];

type Played = { readonly report: AgentReport; readonly record: TrialRecord; readonly cpuMs: readonly number[] };

export async function main(): Promise<void> {
  const turns = Number(process.argv[2] ?? 200);
  const trials = Number(process.argv[3] ?? 5);
  await using gateway = await startGateway({ host: '127.0.0.1', port: 0 });
  const only = process.argv[4];
  for (const { make, tokensPerWord } of MODELS.filter((known) => only === undefined || known.name === only)) {
    const model = await make();
    const work = workOf(1, turns, Math.round(TARGET_TOKENS / turns / tokensPerWord));
    await play(gateway, model, workOf(0, 20, 100), true); // warms up
    let splicedMs = 0;
    for (const withIds of [true, false]) {
      const played: Played[] = [];
      for (let trial = 0; trial < trials; trial++) played.push(await play(gateway, model, work, withIds));
      splicedMs = print(model, played, withIds);
    }
    const renewedMs = await printRenewed(model, work, turns);
    console.log(`at turn ${turns}, a call with text only is ${(renewedMs / splicedMs).toFixed(1)} times as fast, HTTP and agent included`);
  }
}

async function play(gateway: Gateway, model: BenchModel, work: Work, withIds: boolean): Promise<Played> {
  const { renderer, tools } = model;
  const sampler = await scripted(model, work);
  await using session = gateway.open({
    trialId: 'bench' as TrialId,
    modelName: model.name,
    sampler,
    renderer,
    temperature: 1,
    contextLimitTokens: CONTEXT_TOKENS,
    maxTokensPerCall: 4096,
  });
  const { apiBase, apiKey } = session;
  const observations = work.turns.map(({ observation }) => observation);
  const job: AgentJob = { apiBase, apiKey, tools, opening: work.opening, observations, withIds };
  const [report] = (await once(new Worker(AGENT, { workerData: job }), 'message')) as [AgentReport];
  return { report, record: session.record(), cpuMs: sampler.cpuMs };
}

/** Returns the median of the last five turns, in ms. */
function print({ name }: BenchModel, played: readonly Played[], withIds: boolean): number {
  const { report, record } = played[0] as Played;
  const { turnMs } = report;
  const fragments = Object.values(record.fragments).reduce((sum, count) => sum + count, 0);
  const last = record.spans.at(-1);
  console.log(
    `\n${name}: ${turnMs.length} turns, ${last?.prompt.length} prompt tokens in the last, ${fragments} fragment(s), ` +
      `last request ${(report.bodyBytes / 1000).toFixed(0)} kB, ${withIds ? 'ids and log-probabilities' : 'text only'}; ${played.length} trials`,
  );
  const table = tableOf(
    ['turns', 'prompt tokens', 'p50 ms', 'p95 ms', 'CPU p50 ms', 'CPU p95 ms'],
    ['left', ...Array<'right'>(5).fill('right')],
  );
  const width = Math.max(1, Math.ceil(turnMs.length / 5));
  for (let from = 0; from < turnMs.length; from += width) {
    const to = Math.min(from + width, turnMs.length);
    const times = played.flatMap(({ report }) => report.turnMs.slice(from, to));
    const tokens = record.spans[to - 1]?.prompt.length ?? 0;
    const cpu = played.flatMap(({ cpuMs }) => cpuMs.slice(Math.max(from, 1), to));
    table.push([`${from + 1}-${to}`, tokens, ...[times, cpu].flatMap((values) => [0.5, 0.95].map((q) => quantile(values, q).toFixed(2)))]);
  }
  console.log(table.toString());
  const newest = played.flatMap(({ report }) => report.turnMs.slice(-5));
  const newestCpu = played.flatMap(({ cpuMs }) => cpuMs.slice(-5));
  const told = (values: readonly number[]) => [0.5, 0.95].map((q) => quantile(values, q).toFixed(2)).join(' / ');
  console.log(`last five turns, p50 / p95 ms: ${told(newest)}, of which the gateway's thread computes ${told(newestCpu)}`);
  return quantile(newest, 0.5);
}

/**
 * The price of not splicing, in this process and without HTTP: the whole conversation through template and tokenizer. Returns the median of
 * the last turn, in ms.
 */
async function printRenewed({ name, renderer, tools, turnText }: BenchModel, work: Work, turns: number): Promise<number> {
  const table = tableOf(['turn', 'prompt tokens', 'p50 ms', 'p95 ms'], Array<'right'>(4).fill('right'));
  let times: number[] = [];
  for (const turn of [1, Math.ceil(turns / 2), turns]) {
    const messages: ChatMessage[] = [{ role: 'user', content: work.opening }];
    for (const { observation, ...said } of work.turns.slice(0, turn - 1)) {
      const ids = await renderer.tokenize(turnText({ observation, ...said }));
      const parsed = await renderer.parse(ids, { prompt: new Int32Array(0), tools: [] });
      messages.push(
        { role: 'assistant', ...parsed },
        parsed.toolCalls ? { role: 'tool', content: observation } : { role: 'user', content: observation },
      );
    }
    const definitions = tools.map((tool) => ({ json: JSON.stringify(tool) }));
    times = [];
    let tokens = 0;
    for (let run = 0; run < 9; run++) {
      const startedMs = performance.now();
      tokens = (await renderer.render(messages, { tools: definitions, addGenerationPrompt: true })).length;
      times.push(performance.now() - startedMs);
    }
    table.push([turn, tokens, ...[0.5, 0.95].map((q) => quantile(times, q).toFixed(2))]);
  }
  console.log(`\n${name}: everything rendered and encoded anew\n${table.toString()}`);
  return quantile(times, 0.5);
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

if (import.meta.main) await main();
