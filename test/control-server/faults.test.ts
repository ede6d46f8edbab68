import { afterEach, describe, expect, it, vi } from 'vitest';
import { AlarmWatch } from '../../xds-server/control/alarms/alarm-watch.js';
import type { ControlServer } from '../../xds-server/control-server.js';
import { PATIENCE_MS } from '../patience.js';
import {
  afterwards,
  cleanUp,
  expectFaults,
  hasTwoEngines,
  planned,
  readinessOf,
  Site,
  startEngine,
} from './site.js';

afterEach(cleanUp);

const fail = () => {
  throw new RangeError('Invalid time value');
};

/** A control server with a plan for two engines. */
async function world() {
  expectFaults();
  const [a, b] = [await startEngine(), await startEngine()];
  const site = await Site.create({ a: a.address, b: b.address });
  const server = await site.start();
  await vi.waitUntil(() => hasTwoEngines(server), PATIENCE_MS);
  return { a, b, site, server };
}

function seesFault(server: ControlServer, part: string): Promise<boolean> {
  return vi.waitUntil(() => server.alarms.list.some(({ id }) => id === `fault:${part}`), PATIENCE_MS);
}

describe('a fault of the control server itself', () => {
  it('in its alarms costs no plan, and is told', async () => {
    const spy = vi.spyOn(AlarmWatch.prototype, 'look').mockImplementation(fail);
    afterwards(() => spy.mockRestore());
    const { a, site, server } = await world();
    a.kill();
    await vi.waitFor(async () => expect(await planned(server)).toEqual({ b: 1 }), PATIENCE_MS);
    expect(JSON.stringify((await site.get('/v1/alarms')).body)).toContain(
      'a fault of the control server itself in its alarms: Invalid time value; all else goes on',
    );
  });

  it('in its signals leaves the plan in force, and what is seen of engines is told as soon as it ends', async () => {
    const { a, site, server } = await world();
    const spy = vi.spyOn(server.signals, 'evaluate').mockImplementation(fail);
    a.kill();
    await seesFault(server, 'signals');
    expect(readinessOf(await site.sync())).toEqual({ a: [true], b: [true] });
    spy.mockRestore();
    await vi.waitFor(async () => expect(await planned(server)).toEqual({ b: 1 }), PATIENCE_MS);
    expect(readinessOf(await site.sync())).toEqual({ a: [false], b: [true] });
  });

  it('in its planning, before a plan can be blamed, leaves the plan in force, and there is another one soon after it ends', async () => {
    const { a, server } = await world();
    const spy = vi.spyOn(server.recorders, 'record').mockImplementation(({ kind }) => {
      if (kind === 'plan') fail();
    });
    a.kill();
    await seesFault(server, 'planning');
    expect(hasTwoEngines(server)).toBe(true);
    spy.mockRestore();
    await vi.waitFor(async () => expect(await planned(server)).toEqual({ b: 1 }), PATIENCE_MS);
  });

  it('in what it makes of another configuration keeps none after it from being taken', async () => {
    const { a, b, site, server } = await world();
    const spy = vi.spyOn(server.signals, 'reconfigure').mockImplementationOnce(fail);
    afterwards(() => spy.mockRestore());
    site.write(site.text({ a: a.address, b: b.address }, 6));
    expect(await server.reload('test')).toBe(false);
    await seesFault(server, 'configuration');
    site.write(site.text({ b: b.address }, 6));
    expect(await server.reload('test')).toBe(true);
    await vi.waitFor(async () => expect(await planned(server)).toEqual({ b: 1 }), PATIENCE_MS);
  });
});
