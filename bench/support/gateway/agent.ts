import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

/** What an agent in a thread of its own does: it sends its growing conversation and times each answer. */
export type AgentJob = {
  readonly apiBase: string;
  readonly apiKey: string;
  readonly tools: readonly object[];
  readonly opening: string;
  /** What it sends after each answer; their number is that of the turns. */
  readonly observations: readonly string[];
  /** Asks for ids and log-probabilities, as agents that collect them do. */
  readonly withIds: boolean;
};

/** From the first byte sent to the last one received, in milliseconds, turn by turn, and the size of the last request. */
export type AgentReport = { readonly turnMs: readonly number[]; readonly bodyBytes: number };

type Said = { readonly tool_calls?: readonly { readonly id: string }[] };

async function drive({ apiBase, apiKey, tools, opening, observations, withIds }: AgentJob): Promise<AgentReport> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const messages: object[] = [{ role: 'user', content: opening }];
  const ids = withIds ? { logprobs: true, return_token_ids: true } : {};
  const turnMs: number[] = [];
  let bodyBytes = 0;
  for (const observation of observations) {
    const body = JSON.stringify({ model: 'policy', messages, ...(tools.length > 0 ? { tools } : {}), ...ids });
    bodyBytes = Buffer.byteLength(body);
    const startedMs = performance.now();
    const text = await post(`${apiBase}/chat/completions`, body, apiKey, agent);
    turnMs.push(performance.now() - startedMs);
    const said = (JSON.parse(text) as { choices: [{ message: Said }] }).choices[0].message;
    const call = said.tool_calls?.[0];
    messages.push(said, call ? { role: 'tool', tool_call_id: call.id, content: observation } : { role: 'user', content: observation });
  }
  agent.destroy();
  return { turnMs, bodyBytes };
}

async function post(url: string, body: string, apiKey: string, agent: Agent): Promise<string> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const sent = request(url, { method: 'POST', agent, headers });
  sent.end(body);
  const [response] = await once(sent, 'response');
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}: ${text.slice(0, 500)}`);
  return text;
}

parentPort?.postMessage(await drive(workerData as AgentJob));
