import { EventEmitter } from 'node:events';
import { expect, it, vi } from 'vitest';
import { endAsked } from './end-asked.js';

it('a request to end that comes twice within a second is one, and a later one of either kind means at once', async () => {
  const process = new EventEmitter();
  const atOnce = vi.fn();
  let nowMs = 5_000;
  const asked = endAsked(process, atOnce, () => nowMs);
  process.emit('SIGINT');
  await asked;
  nowMs += 900;
  process.emit('SIGINT');
  process.emit('SIGTERM');
  expect(atOnce).not.toHaveBeenCalled();
  nowMs += 200;
  process.emit('SIGTERM');
  expect(atOnce).toHaveBeenCalledOnce();
});
