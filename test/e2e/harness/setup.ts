import { afterAll, afterEach } from 'vitest';
import { ACCOUNT_BEGINS } from './account.js';
import { Mesh } from './mesh.js';
import { Process } from './process.js';

// A test that fails says how things are, as nothing of that is left when its processes have ended;
// who waited in vain has said it already.
afterEach(async ({ task }) => {
  const { state, errors = [] } = task.result ?? {};
  if (state !== 'fail' || errors.some(({ message }) => message.includes(ACCOUNT_BEGINS))) return;
  for (const mesh of Mesh.running) console.error(`${task.name}\n\n${await mesh.account()}`);
});

// What a start that took too long began, nobody else ends.
afterAll(async () => {
  const left = [...Process.alive];
  await Promise.all(left.map((process) => process.stop('SIGKILL')));
  if (left.length > 0) throw new Error(`left running: ${left.map(({ name }) => name).join(', ')}`);
});
