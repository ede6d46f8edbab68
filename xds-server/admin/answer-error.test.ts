import express from 'express';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type ErrorCode, WardropError } from '../errors.js';
import { answerError } from './answer-error.js';

it.each<[ErrorCode, number, number]>([
  ['WARDROP_BUSY', 503, 0],
  ['WARDROP_NOT_READY', 503, 0],
  ['WARDROP_QUERY_INVALID', 400, 0],
  ['WARDROP_SOLVER_FAILED', 500, 1],
])('answers %s with %i, and what is a fault goes to the log, too', async (code, status, logged) => {
  const error = vi.fn();
  const app = express();
  app.get('/', () => {
    throw new WardropError(code, 'why');
  });
  app.use(answerError({ error }));
  const server = app.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await vi.waitUntil(() => server.listening);
  const response = await fetch(`http://127.0.0.1:${(server.address() as { port: number }).port}/`);
  expect(response.status).toBe(status);
  expect(await response.json()).toEqual({ code, message: 'why' });
  expect(error).toHaveBeenCalledTimes(logged);
});
