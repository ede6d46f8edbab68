import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadConfig } from '../../config/load.js';
import { encodeState } from '../../plan/state-file/state-format.js';
import { offlineInput } from './offline.js';

it('questions that are answered offline count replicas that the control server has found', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'wardrop-offline-'));
  const file = join(folder, 'fleet.yaml');
  const engines = ['{id: a, region: r, models: [m], discovery: {dns: "a.example:80"}}'];
  writeFileSync(
    file,
    `frontends: [{id: f, region: r}]\nengines: [${engines}]\nserver: {stateFile: s.json}\n`,
  );
  const addresses = ['10.0.0.1:80', '10.0.0.2:80'];
  const state = { plan: null, snapshotVersion: 1, salt: 'pepper', discovered: [['a', addresses]] as const };
  writeFileSync(join(folder, 's.json'), encodeState(state));
  const input = await offlineInput(loadConfig(file));
  rmSync(folder, { recursive: true });
  expect(input.state.engines[0]!.replicas).toEqual(addresses.map((address) => ({ address, ready: true })));
});
