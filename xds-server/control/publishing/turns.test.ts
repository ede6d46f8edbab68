import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { noFault } from '../../../test/no-fault.js';
import { Turns } from './turns.js';

/** Jobs that take a while by a clock of their own, and what was done. */
function world() {
  let nowMs = 0;
  const done: string[] = [];
  const turns = new Turns(() => nowMs, noFault);
  const run = (name: string, takesMs: number) =>
    turns.run(() => {
      nowMs += takesMs;
      done.push(name);
    });
  return { turns, done, run };
}

it('what takes little is done at once', () => {
  const { done, run } = world();
  for (const name of ['a', 'b', 'c']) run(name, 5);
  expect(done).toEqual(['a', 'b', 'c']);
});

it('the event loop goes on between jobs that take long, which keep their order', async () => {
  const { done, run } = world();
  for (const name of ['a', 'b', 'c']) run(name, 15);
  expect(done).toEqual(['a', 'b']);
  run('d', 15);
  await nextTurn();
  expect(done).toEqual(['a', 'b', 'c', 'd']);
});

it('one that takes longer than a slice is done, and the others after it', async () => {
  const { done, run } = world();
  for (const name of ['a', 'b', 'c']) run(name, 100);
  expect(done).toEqual(['a']);
  await nextTurn();
  expect(done).toEqual(['a', 'b']);
  await nextTurn();
  expect(done).toEqual(['a', 'b', 'c']);
});

it('is idle when all that waited is done', async () => {
  const { turns, done, run } = world();
  for (const name of ['a', 'b', 'c']) run(name, 100);
  await turns.idle();
  expect(done).toEqual(['a', 'b', 'c']);
});

it('a job that throws, at once or after it has waited, keeps no other from being done', async () => {
  const done: string[] = [];
  const faults: unknown[] = [];
  const turns = new Turns(
    () => 21 * done.length,
    (error) => faults.push(error),
  );
  const fail = () => {
    throw new Error(`after ${done.length}`);
  };
  turns.run(fail);
  for (const name of ['a', 'b', 'c']) {
    turns.run(() => done.push(name));
    turns.run(fail);
  }
  await turns.idle();
  expect(done).toEqual(['a', 'b', 'c']);
  expect(faults).toMatchObject([0, 1, 2, 3].map((count) => ({ message: `after ${count}` })));
});
