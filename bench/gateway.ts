/**
 * What one model call costs in the gateway itself: an instant sampler, a client in a thread of its own, one call at a time.
 * Prints wall time per call (client included) and CPU time of the gateway's thread, at turn 1 and at turn 50.
 * Run: node bench/gateway.ts [calls]
 */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import type { TrialId } from '../core/ids.ts';
import { startGateway } from '../services/gateway/index.ts';
import { tinyAsciiRenderer } from '../services/gateway/renderers/tiny-ascii.ts';

type Job = { readonly apiBase: string; readonly apiKey: string; readonly turn: number; readonly calls: number };
const TURNS = [1, 50];
const ANSWER = 'cp sun map\n';

if (isMainThread) await serve(Number(process.argv[2] ?? 3000));
else await drive(workerData as Job);

async function serve(calls: number) {
  await using gateway = await startGateway({ host: '127.0.0.1', port: 0 });
  const tokens = Int32Array.from(Buffer.from(ANSWER));
  const result = { tokens, logprobs: new Float32Array(tokens.length).fill(-0.5), stop: 'stop', promptCacheHitTokens: 0 } as const;
  const options = {
    modelName: 'tiny',
    sampler: { version: 'bench', sample: async () => result },
    renderer: tinyAsciiRenderer(),
    temperature: 1,
  };
  for (const turn of TURNS) {
    const trialId = `turn-${turn}` as TrialId;
    await using session = gateway.open({ ...options, trialId, contextLimitTokens: 4096, maxTokensPerCall: 16 });
    const client = new Worker(new URL(import.meta.url), {
      workerData: { apiBase: session.apiBase, apiKey: session.apiKey, turn, calls } satisfies Job,
    });
    await once(client, 'message'); // warmed up
    const before = process.threadCpuUsage();
    const startedMs = performance.now();
    client.postMessage('go');
    await once(client, 'message');
    const wallUs = ((performance.now() - startedMs) * 1000) / calls;
    const { user, system } = process.threadCpuUsage(before);
    const { spans } = session.record();
    console.log(
      `turn ${String(turn).padStart(2)} (${spans.at(-1)?.prompt.length} prompt tokens): ${wallUs.toFixed(0)} us/call wall, ` +
        `${((user + system) / calls).toFixed(0)} us/call gateway CPU, ${calls} calls`,
    );
  }
}

async function drive({ apiBase, apiKey, turn, calls }: Job) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const messages = [{ role: 'user', content: 'files key sun\ntask copy sun to map and delete key' }];
  const call = async () => {
    const body = JSON.stringify({ model: 'tiny', messages, temperature: 1, max_tokens: 16, logprobs: true, return_token_ids: true });
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
    const sent = request(`${apiBase}/chat/completions`, { method: 'POST', agent, headers });
    sent.end(body);
    const [response] = await once(sent, 'response');
    if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
    response.resume();
    await once(response, 'end');
  };
  for (let done = 1; done < turn; done++) {
    await call();
    messages.push({ role: 'assistant', content: ANSWER.trim() }, { role: 'user', content: '[0]' });
  }
  for (let warm = 0; warm < calls; warm++) await call();
  parentPort?.postMessage('warm');
  await once(parentPort as NonNullable<typeof parentPort>, 'message');
  for (let i = 0; i < calls; i++) await call();
  parentPort?.postMessage('done');
  agent.destroy();
}
