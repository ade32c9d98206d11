import fc from 'fast-check';
import { expect } from 'vitest';
import type { TrialId } from '../../core/ids.ts';
import { type Gateway, startGateway, type TrialRecord } from '../../services/gateway/index.ts';
import { type Next, nextHistories, TOOLS, type WireMessage } from './agent.ts';
import { type PlannedStep, plannedStep } from './arbitraries.ts';
import { ACCENTS } from './model-speech.ts';
import { type Exchange, playedModel } from './played-model.ts';
import { type RealModel, realModel } from './real-model.ts';

type Family = keyof typeof ACCENTS;

/** How a call came about. `causes` may be its recorded one; `added` are the messages after the last answer, of a call that goes on from it. */
type Asked = { readonly causes: Next['causes']; readonly added: readonly WireMessage[]; readonly lookAlike: boolean };

/**
 * Random agents talk with a random model through the gateway, over the wire. Whatever they do, the record must be what was sampled, and
 * where they leave history alone the next prompt must be the previous one, its sampled ids, and new text.
 */
export async function provedFor(family: Family, options: { readonly runs: number; readonly mayRefuse?: RegExp }): Promise<Tally> {
  const model = await realModel(family);
  const tally: Tally = { calls: 0, spliced: 0, goneOn: 0, opened: {} };
  const gateway = await startGateway({ host: '127.0.0.1', port: 0 });
  try {
    let trial = 0;
    const steps = fc.array(plannedStep, { minLength: 2, maxLength: 9 });
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), async (plan, withTools) => {
        const played = await play({ gateway, model, family, trialId: `${family}-${trial++}` as TrialId }, plan, withTools);
        await check(model, played, options.mayRefuse ?? /^$/, tally);
      }),
      { numRuns: options.runs },
    );
  } finally {
    await gateway.close();
  }
  return tally;
}

const START: readonly WireMessage[] = [
  { role: 'system', content: 'You work in a shell.' },
  { role: 'user', content: 'Tidy up the folder.' },
];

export type Tally = { calls: number; spliced: number; goneOn: number; readonly opened: Record<string, number> };

type Stage = { readonly gateway: Gateway; readonly model: RealModel; readonly family: Family; readonly trialId: TrialId };
type Played = { readonly record: TrialRecord; readonly exchanges: readonly Exchange[]; readonly asked: readonly Asked[] };

async function play({ gateway, model, family, trialId }: Stage, plan: readonly PlannedStep[], tools: boolean): Promise<Played> {
  const { renderer } = model;
  const opens = (await promptText(model)).trimEnd().endsWith('<think>');
  const { sampler, exchanges, plan: say } = playedModel(model, ACCENTS[family], opens);
  const withTools = tools && renderer.noTools === null;
  await using session = gateway.open({
    trialId,
    modelName: family,
    sampler,
    renderer,
    contextLimitTokens: 1_000_000,
    maxTokensPerCall: 100_000,
    temperature: 1,
  });
  const ask = async (messages: readonly WireMessage[], step: PlannedStep) => {
    say(step.turn, withTools);
    const response = await fetch(`${session.apiBase}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${session.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ messages, ...(withTools ? { tools: TOOLS } : {}) }),
    });
    const body = (await response.json()) as { choices?: { message: WireMessage }[]; error?: { message: string } };
    return { answer: body.choices?.[0]?.message ?? null, status: response.status };
  };

  const asked: Asked[] = [];
  let at: Asked & { readonly history: readonly WireMessage[] } = { history: START, causes: ['first'], added: START, lookAlike: false };
  for (const planned of plan) {
    const step = planned.lookAlikeIn ? { ...planned, observation: `${planned.observation} ${closeOf(family)} on` } : planned;
    const { answer } = await ask(at.history, step);
    if (answer === null) break; // the template takes no such conversation
    asked.push(at);
    const next = nextHistories(at.history, answer, step);
    const [one, other] = next;
    if (one && other) {
      const answers = await Promise.all([ask(one.history, step), ask(other.history, step)]);
      if (answers.some((side) => side.answer === null)) break;
      for (const _ of answers) asked.push({ causes: [...one.causes, ...other.causes], added: [], lookAlike: false });
      at = { history: START, causes: ['retry'], added: [], lookAlike: false };
    } else if (one) {
      const goesOn = step.move === 'go_on';
      const added = goesOn ? one.history.slice(at.history.length + 1) : [];
      at = { ...one, added, lookAlike: goesOn && step.lookAlikeIn };
    }
  }
  return { record: session.record(), exchanges, asked };
}

function closeOf(family: Family): string {
  return ACCENTS[family].close({ reasoning: '', text: '', calls: [] });
}

async function promptText({ renderer, tokenizer }: RealModel): Promise<string> {
  const ids = await renderer.render([{ role: 'user', content: 'a' }], { tools: [], addGenerationPrompt: true });
  return tokenizer.decode(ids);
}

async function check(model: RealModel, { record, exchanges, asked }: Played, mayRefuse: RegExp, tally: Tally): Promise<void> {
  const { spans, links } = record;
  // What is recorded is what the sampler was asked and what it gave, nothing more: no made-up end, no id that was not sampled.
  const told = exchanges.slice(0, spans.length).map(({ prompt, gave }) => `${prompt.join()}|${gave.join()}`);
  expect(spans.map(({ prompt, sampled }) => `${prompt.join()}|${sampled.join()}`).sort()).toEqual(told.sort());
  for (const [index, { prompt }] of spans.entries()) {
    const link = links[index];
    if (link === undefined) throw new Error(`call ${index} has no link`);
    tally.calls++;
    if (link.cause) tally.opened[link.cause] = (tally.opened[link.cause] ?? 0) + 1;
    const { causes = [], added = [], lookAlike = false } = asked[index] ?? {};
    if (!(link.detail && mayRefuse.test(link.detail))) {
      expect(causes, `cause of call ${index} (${link.detail})`).toContain(link.cause);
      if (added !== START && added.length > 0) expect(link.parentCall).toBe(index - 1);
    }
    if (lookAlike) expect(link.lookAlikes).toBeGreaterThan(0);
    const parent = link.parentCall === null ? undefined : spans[link.parentCall];
    if (parent === undefined) continue;
    tally.spliced++;
    const inherited = Int32Array.of(...parent.prompt, ...parent.sampled);
    expect(prompt.length).toBeGreaterThan(inherited.length);
    expect(prompt.slice(0, inherited.length)).toEqual(inherited);
    const text = await model.tokenizer.decode(prompt.slice(inherited.length));
    if (link.cause !== null) continue;
    tally.goneOn++;
    for (const { content } of added) expect(shows(text, content ?? ''), `${JSON.stringify(content)} in ${JSON.stringify(text)}`).toBe(true);
  }
}

/** As it is, trimmed, or as JSON, which is how some templates show tool results. */
function shows(text: string, content: string): boolean {
  const normal = content.normalize('NFC').trim();
  return [normal, JSON.stringify(normal).slice(1, -1)].some((form) => text.normalize('NFC').includes(form));
}
