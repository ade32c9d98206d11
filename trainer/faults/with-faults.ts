import { setTimeout as sleep } from 'node:timers/promises';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Hono } from 'hono';
import type { Handle } from '../service/http/gate.ts';
import { parsePath } from '../service/ids.ts';
import { refusal } from './answers.ts';
import { type Call, readCall } from './call.ts';
import { bend, type CallFault, type Course, concerns, type Ending, endingOf, isCourseFault, lossAnswer, straight } from './call-faults.ts';
import { FaultBook } from './fault-book.ts';
import { faultRoutes } from './fault-routes.ts';
import { RESULT_FAULTS, type ResultFault } from './fault-schemas.ts';
import { jsonResult } from './json-result.ts';
import type { Plan, RequestType } from './plan.ts';
import { alterResult, concernsResult } from './result-faults.ts';
import { closeResult, openResult } from './results.ts';

const API = '/api/v1/';

/** Puts a fault plan before the service and behind its gate, and `/faults` beside it, which shows and changes the plan. */
export function withFaults(app: Hono, plan: Plan): Handle {
  const book = new FaultBook(plan);
  app.route('/', faultRoutes(book));
  const service = new FaultyService(app, book);
  return async (request, connection) => {
    const { pathname } = new URL(request.url);
    if (!pathname.startsWith(API)) return app.fetch(request, connection);
    const ending = await service.answer(request, pathname.slice(API.length));
    if (ending !== 'closed') return ending;
    connection.outgoing.destroy();
    return RESPONSE_ALREADY_SENT;
  };
}

/**
 * The service as the plan lets it be. Rules are asked in the plan's order, first those that answer in the service's stead: one that
 * ends a call hides it from the others. So a call that the others have met did reach the service.
 */
class FaultyService {
  readonly #app: Hono;
  readonly #book: FaultBook;
  readonly #types = new Map<string, RequestType>();
  /** Saves whose checkpoint must go before their result is told. */
  readonly #forgotten = new Set<string>();

  constructor(app: Hono, book: FaultBook) {
    this.#app = app;
    this.#book = book;
  }

  async answer(request: Request, path: string): Promise<Ending> {
    const call = await readCall(request, path, (requestId) => this.#types.get(requestId));
    const lost = lossAnswer(call, this.#book);
    if (lost !== null) return lost;
    const due = this.#book.rules.filter((active) => active.matches(call));
    for (const active of due) {
      const { fault } = active.rule;
      if (isResultFault(fault) || isCourseFault(fault) || !concerns(fault, call)) continue;
      const ending = await endingOf(fault, active, call, this.#book);
      if (ending !== null) return ending;
    }
    const course = straight(call);
    for (const active of due) {
      const { fault } = active.rule;
      if (!isResultFault(fault) && isCourseFault(fault) && concerns(fault, call)) bend(fault, active, call, course);
    }
    return this.#follow(course, call, request);
  }

  async #follow(course: Course, call: Call, request: Request): Promise<Ending> {
    const hand = () => this.#hand(request, course.body);
    const first = await hand();
    const second = course.duplicate === null ? first : await hand();
    const [promise, repeated] = [await requestIdOf(first), await requestIdOf(second)];
    if (promise !== repeated) return refusal(500, `the call was promised as ${promise} and, handed in again, as ${repeated}`);
    if (promise !== null) this.#note(promise, call, course);
    const answer = await this.#spoiled(call, course.duplicate === 'second' ? second : first);
    if (course.delayMs > 0) await sleep(course.delayMs, undefined, { ref: false });
    return course.isAnswerLost ? 'closed' : answer;
  }

  #note(promise: string, call: Call, course: Course): void {
    if (call.type !== null) this.#types.set(promise, call.type);
    if (course.isForgotten) this.#forgotten.add(promise);
  }

  async #hand(request: Request, body: Uint8Array<ArrayBuffer>): Promise<Response> {
    const { url, method, headers } = request;
    const own = new Headers(headers);
    own.delete('content-length');
    return this.#app.fetch(new Request(url, { method, headers: own, ...(body.byteLength > 0 ? { body } : {}) }));
  }

  async #spoiled(call: Call, answer: Response): Promise<Response> {
    if (call.path !== 'retrieve_future' || call.requestId === null || answer.status !== 200) return answer;
    if (this.#forgotten.has(call.requestId)) await this.#forget(answer.clone());
    if (answer.headers.get('content-type') !== 'application/x-protobuf') return answer;
    const result = openResult(new Uint8Array(await answer.clone().arrayBuffer()), call.type === 'Sample' ? 'sample' : 'loss');
    const happened: ResultFault['kind'][] = [];
    for (const active of this.#book.rules) {
      const { fault } = active.rule;
      if (!isResultFault(fault) || !active.matches(call) || !concernsResult(fault, result)) continue;
      const draws = active.nextOf(call.requestId);
      if (draws === null) continue;
      alterResult(fault, result, draws);
      happened.push(fault.kind);
    }
    if (happened.includes('json_result')) return Response.json(jsonResult(result));
    return happened.length === 0 ? answer : new Response(closeResult(result), { headers: { 'content-type': 'application/x-protobuf' } });
  }

  /** Deletes what was saved, as soon as it is saved and before anybody is told. */
  async #forget(answer: Response): Promise<void> {
    const { path } = (await answer.json()) as { readonly path?: string };
    const saved = path === undefined ? null : parsePath(path);
    if (saved === null) return;
    const url = `http://127.0.0.1${API}training_runs/${saved.run}/checkpoints/${saved.kind}/${saved.name}`;
    await this.#app.fetch(new Request(url, { method: 'DELETE' }));
  }
}

const isResultFault = (fault: CallFault | ResultFault): fault is ResultFault => RESULT_FAULTS.includes(fault.kind);

/** The future that an answer promises; null when it promises none. */
async function requestIdOf(answer: Response): Promise<string | null> {
  if (answer.status !== 200 || !answer.headers.get('content-type')?.startsWith('application/json')) return null;
  const fields = (await answer.clone().json()) as { readonly request_id?: string; readonly type?: string };
  return fields.type === 'try_again' ? null : (fields.request_id ?? null);
}
