import { isDeepStrictEqual } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { id64 } from '../../wire/hash.js';
import { noEngineUsage } from '../../wire/usage-report.js';
import { exactJson, parseExactJson } from '../exact-json.js';
import type { Engine } from '../fleet/fleet.js';
import { MeasuredCapacity } from './capacity/measured-capacity.js';
import { EngineEvidence } from './readiness/engine-evidence.js';
import { StuckReplicas } from './readiness/stuck-replicas.js';
import { SAVED_FORMAT, type SavedSignals, Signals } from './signals.js';
import { life, lifeConfig } from './testing/life.js';
import { type PrivateState, PrivateStateReader } from './testing/private-state.js';

/** Nothing follows from totals and traffic, which count since a server started; what is under way is counted when it is asked for. */
const reader = new PrivateStateReader(['Signals.totals', 'Signals.traffic', 'UsageLedger.#counted']);
afterAll(() => reader.close());

/** A value of each field that was seen, by `Class.field`, and those that had another one, too. */
const seen = new Map<string, unknown>();
const varied = new Set<string>();

function note(state: unknown): void {
  if (typeof state !== 'object' || state === null) return;
  const { kind, fields } = state as Partial<PrivateState>;
  if (kind !== undefined && fields !== undefined) {
    for (const [field, value] of Object.entries(fields)) {
      const name = `${kind}.${field}`;
      if (!seen.has(name)) seen.set(name, value);
      else if (!varied.has(name) && !isDeepStrictEqual(seen.get(name), value)) varied.add(name);
    }
  }
  for (const each of Object.values(state)) note(each);
}

/** Names of all that was ever saved, by where it is; what is in lists and what is absent at times included. */
const names = new Set<string>();

function noteNames(saved: unknown, path = ''): void {
  if (typeof saved !== 'object' || saved === null) return;
  for (const [name, each] of Object.entries(saved)) {
    const own = Array.isArray(saved) ? `${path}[]` : `${path}.${name}`;
    names.add(own);
    noteNames(each, own);
  }
}

describe('saved signals', () => {
  it('go on as those do that were never saved, whatever happens', () => {
    let config = lifeConfig(20);
    const held = [{ frontendId: 'f', poolId: 'm', requestsPerSecond: 4 }];
    const signals = new Signals(config, held, 0);
    let others = new Signals(config, held, 0);
    const events = [...life(1)];
    for (const [at, event] of events.entries()) {
      const told = event.tell(signals);
      if (!isDeepStrictEqual(event.tell(others), told)) expect.fail(`they differ at ${event.atMs} ms`);
      config = event.config ?? config;
      const isSaved = at % (at < 600 ? 40 : 360) === 0 || at === events.length - 1;
      if (!isSaved) continue;
      const saved = others.save();
      noteNames(saved);
      const text = exactJson(saved);
      others = new Signals(config, [], event.atMs);
      others.restore(parseExactJson(text) as SavedSignals);
      const state = reader.read(signals);
      note(state);
      const restored = reader.read(others);
      if (!isDeepStrictEqual(restored, state)) expect(restored).toEqual(state);
    }
  }, 240_000);

  /** Restores in `other` what `one` saves: then they must be alike. */
  function expectAlike<T>(one: { save(): T }, other: { restore(saved: T): void }): void {
    other.restore(parseExactJson(exactJson(one.save())) as T);
    const state = reader.read(one);
    note(state);
    expect(reader.read(other)).toEqual(state);
  }

  it('go on with what is seldom known of a capacity', () => {
    const room = { seconds: 5, answers: 1_000, knowsCache: true, doneRho: 0.15, heldRho: 0.3, isFull: false };
    const capacity = new MeasuredCapacity();
    for (let second = 0; second < 60; second++) {
      const look = second < 5 ? { ...room, doneRho: 0.3, heldRho: 0.98, isFull: true } : room;
      capacity.accept({ ...look, mostRho: look.doneRho }, true, second * 1_000);
      expectAlike(capacity, new MeasuredCapacity());
    }
  });

  it('go on with what is seldom known of an engine that breaks off its answers', () => {
    const evidence = new EngineEvidence();
    for (let ms = 0; ms < 30_000; ms += 500) {
      const broken = ms % 20_000 < 5_000 ? 1 : 0;
      evidence.add({ ...noEngineUsage(1n, 2n), status2xx: 1, broken, failures: broken }, ms);
      evidence.veto(ms);
      noteNames(evidence.save(), '.evidence');
      expectAlike(evidence, new EngineEvidence());
    }
  });

  it('go on with replicas that are stuck, and were', () => {
    const engine = { id: 'e', endpoints: ['10.0.0.1:80', '10.0.0.2:80'] } as unknown as Engine;
    const stuck = new StuckReplicas();
    for (let ms = 0; ms < 60_000; ms += 500) {
      const hangs = ms >= 30_000 && ms < 50_000;
      const inFlight = ms < 50_000 ? 20 + ms / 250 : 0;
      stuck.addEngine('e', { ended: 10, failures: 0, noResponse: ms % 2_000 === 0 ? 1 : 0, wholeCount: 8 });
      stuck.addStreams('e', 1);
      stuck.addReplica('10.0.0.1:80', hangs || ms % 1_000 > 0 ? 0 : 1_000, ms, ms);
      stuck.evaluate([engine], () => true, new Map([['10.0.0.1:80', inFlight]]), ms);
      noteNames(stuck.save(), '.stuck');
      expectAlike(stuck, new StuckReplicas());
    }
  });

  it('are all that there is to know: no field stays as it began in this life', () => {
    expect([...seen.keys()].filter((name) => !varied.has(name))).toEqual([]);
  });

  it('have a format that changes with their form: if it did, raise SAVED_FORMAT and note both here', () => {
    const form = id64([...names].sort().join('\n')).toString(16);
    expect({ format: SAVED_FORMAT, form }).toEqual({ format: 11, form: '2f2689e47e43cc16' });
  });
});
