import { Hono } from 'hono';
import { HttpFailure, StateError } from '../service/failures.ts';
import { readAnyJson } from '../service/http/bodies.ts';
import type { FaultBook } from './fault-book.ts';
import { type Plan, parsePlan } from './plan.ts';

/** `GET /faults` shows the plan with its counters; `PUT /faults` puts another in its place and starts the counters over. */
export function faultRoutes(book: FaultBook): Hono {
  const show = () => ({ rules: book.rules.map((active) => active.report) });
  return new Hono()
    .get('/faults', (c) => c.json(show()))
    .put('/faults', async (c) => {
      book.replace(checked(await readAnyJson(c)));
      return c.json(show());
    });
}

function checked(value: unknown): Plan {
  try {
    return parsePlan(value, 'PUT /faults');
  } catch (error) {
    throw error instanceof StateError ? new HttpFailure(400, error.message) : error;
  }
}
