import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApp } from '../http/app.ts';
import { gated } from '../http/gate.ts';
import { Service } from '../service.ts';
import type { SamplingBackend } from '../threads/sampling-backend.ts';
import { CountingBackend } from './counting-backend.ts';

/** Samples nothing: every answer is the same two bytes. */
const silentSampler = (): SamplingBackend => ({
  sample: () => ({ callId: 1, result: Promise.resolve(new Uint8Array([1, 2])) }),
  cancel: () => {},
  addAdapter: () => {},
  forgetAdapter: () => {},
});

/** For tests, the routes over a counting engine, with a clock to turn. */
export class ServiceFixture {
  readonly folder = mkdtempSync(join(tmpdir(), 'service-'));
  /** ISO time. */
  now = '2026-01-01T00:00:00.000Z';
  service: Service = this.#open();
  #app = this.#routes();

  /** As after a kill. */
  restart(): void {
    this.service = this.#open();
    this.#app = this.#routes();
  }

  async send(method: string, path: string, body?: unknown): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
    return this.sendBytes(method, path, body === undefined ? null : JSON.stringify(body), {});
  }

  async sendBytes(
    method: string,
    path: string,
    body: string | Uint8Array<ArrayBuffer> | null,
    headers: Readonly<Record<string, string>>,
  ): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
    const response = await this.#app.request(`/api/v1/${path}`, { method, headers: { 'X-API-Key': 'tml-test', ...headers }, body });
    const text = await response.text();
    return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>) };
  }

  /** A call that must be answered with success. */
  async ask(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
    const answer = await this.send(method, path, body);
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** A session with one model in it, of rank 4. */
  async openSession(): Promise<{ readonly session: string; readonly model: string }> {
    const session = String((await this.ask('POST', 'create_session', {})).session_id);
    const body = { session_id: session, model_seq_id: 0, base_model: 'base', lora_config: { rank: 4 } };
    return { session, model: String((await this.call('create_model', body)).model_id) };
  }

  /** A call that answers a future, and its result. */
  async call(path: string, body: unknown): Promise<Record<string, unknown>> {
    const { request_id } = await this.ask('POST', path, body);
    return this.ask('POST', 'retrieve_future', { request_id });
  }

  remove(): void {
    this.service.close();
    rmSync(this.folder, { recursive: true });
  }

  #routes(): ReturnType<typeof gated> {
    return gated({ prefix: 'tml-' }, createApp(this.service).fetch);
  }

  #open(): Service {
    return new Service({
      stateFolder: this.folder,
      baseModels: ['base', 'other'],
      training: new CountingBackend(),
      samplingBackend: silentSampler(),
      longPollMs: 500,
      now: () => new Date(this.now),
      onFatal: (reason) => {
        throw reason;
      },
    });
  }
}
