import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { noFault } from '../../../test/no-fault.js';
import { Alarms } from '../alarms/alarms.js';
import { ConfigWatch } from './config-watch.js';
import { LiveConfig } from './live-config.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wardrop-live-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

it('whatever a new file brings about, the configuration in force stays, and the next good file is taken', async () => {
  const file = join(folder, 'fleet.yaml');
  const write = (model: string) =>
    writeFileSync(
      file,
      `frontends: [{id: f, region: r}]\nengines: [{id: a, region: r, models: [${model}], endpoints: []}]\n`,
    );
  write('m');
  const live = LiveConfig.read(file);
  const log = pino({}, { write: () => undefined });
  const alarms = new Alarms(Date.now, log);
  live.follow({
    alarms,
    faults: { note: noFault },
    log,
    onRead: () => {},
    idle: async () => {},
    onChange: () => {},
  });

  write('n');
  const reading = vi.spyOn(ConfigWatch.prototype, 'reading').mockImplementation(() => {
    throw new RangeError('Maximum call stack size exceeded');
  });
  expect(await live.reload('test')).toBe(false);
  reading.mockRestore();
  expect(live.current.fleet.pools[0]!.id).toBe('m');
  expect(alarms.list).toMatchObject([{ id: 'config', message: expect.stringMatching(/Maximum call stack/) }]);
  expect(await live.reload('test')).toBe(true);
  expect(live.current.fleet.pools[0]!.id).toBe('n');
  expect(alarms.list).toEqual([]);
  await live.stop();
});
