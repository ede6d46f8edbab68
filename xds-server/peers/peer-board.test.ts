import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { PeerBoard } from './peer-board.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

it('keeps no reports of nodes that are gone while no peer asks', async () => {
  let nowMs = 0;
  const board = new PeerBoard('here', () => nowMs);
  const add = (nodeId: string) => {
    const bytes = new Uint8Array(1_000);
    board.addReport({ kind: 'report', frontendId: 'f', nodeId, bytes });
    return new WeakRef(bytes);
  };
  const gone = add('gone');
  nowMs = 11_000;
  const present = add('present');
  await turn();
  collectGarbage();
  expect(gone.deref()).toBe(undefined);
  expect(present.deref()).not.toBe(undefined);
});
