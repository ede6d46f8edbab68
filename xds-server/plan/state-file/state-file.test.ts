import { lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { evolvePlan } from '../evolve.js';
import type { Plan } from '../plan.js';
import { planId } from '../plan-id.js';
import { evolveInput } from '../testing/fleet.js';
import type { ServerState } from './server-state.js';
import { StateFile } from './state-file.js';
import { decodeState, encodeState, statePieces } from './state-format.js';
import { readState } from './state-salvage.js';

/** A plan with former owners, a backup-less row and an empty one. */
function plan(): Plan {
  const rows = (e0: number) => [
    { frontendId: 'east', weights: { e0, e1: 1 - e0 } },
    { frontendId: 'north', weights: { e2: 1 } },
    { frontendId: 'west', weights: {}, shed: [{ priority: 0, fraction: 0.1 }] },
  ];
  const previous = evolvePlan(evolveInput(rows(0.5), [1, 1, 1]));
  return evolvePlan(evolveInput(rows(0.25), [1, 1, 1], { previous }));
}

const state = (snapshotVersion = 3): ServerState => ({ plan: plan(), snapshotVersion, salt: 'pepper' });

describe('state format', () => {
  it('gives back what it was given', () => {
    expect(state().plan!.rows[0]!.former).not.toEqual([]);
    expect(decodeState(encodeState(state()))).toEqual(state());
    const empty = { plan: null, snapshotVersion: 0, salt: 's' };
    expect(decodeState(encodeState(empty))).toEqual(empty);
  });

  it('is JSON in pieces, none of which has more than one row', () => {
    const pieces = [...statePieces({ ...state(), operations: undefined } as unknown as ServerState)];
    expect(JSON.stringify(JSON.parse(pieces.join('')))).toBe(pieces.join('').trimEnd());
    const rowsIn = pieces.map((piece) => piece.split('"frontendId"').length - 1);
    expect(Math.max(...rowsIn)).toBe(1);
    expect(rowsIn.filter((rows) => rows === 1)).toHaveLength(state().plan!.rows.length);
  });

  it('keeps which rows no solve found', () => {
    const rows = plan().rows.map((row, at) => (at === 0 ? { ...row, isPlain: true as const } : row));
    const plain = { ...state(), plan: { ...plan(), rows } };
    expect(decodeState(encodeState(plain))).toEqual(plain);
  });

  it('keeps what operators ordered, and replicas that were found', () => {
    const operations = {
      drains: [{ engineId: 'e0', address: null, sinceMs: 1, overSeconds: 30, untilMs: 9 }],
      orders: [{ kind: 'hold' as const, engineId: 'e1', sinceMs: 2, untilMs: 8 }],
      penalties: [{ engineId: 'e1', severity: 4.5, sinceMs: 1 }],
      capacities: [
        { engineId: 'e0', share: 0.7, sinceMs: 1 },
        { engineId: 'e1', share: 0.4, sinceMs: 1, basis: '5eed' },
      ],
      sizes: [
        {
          ...{ frontendId: 'f0', poolId: 'm', atMs: 1 },
          ...{ promptTokens: 4_000, uncachedPromptTokens: 900, outputTokens: 1.5 },
        },
      ],
      rates: [
        { frontendId: 'f0', poolId: 'm', requestsPerSecond: 4.5 },
        { frontendId: 'f0', poolId: 'm', priority: -10, requestsPerSecond: 0 },
      ],
      actions: [{ atMs: 1, action: 'drain' as const, target: 'e0', by: 'me' }],
    };
    const discovered = [['e0', ['10.0.0.1:80']]] as const;
    const full = { ...state(), operations, discovered };
    expect(decodeState(encodeState(full))).toEqual(full);
  });

  it('never takes a damaged plan for the one that was saved', () => {
    const text = encodeState(state());
    fc.assert(
      fc.property(
        fc.nat(text.length - 2),
        fc.constantFrom('', '0', '9', '"', '}', 'x'),
        (at, replacement) => {
          const damaged = text.slice(0, at) + replacement + text.slice(at + 1);
          let decoded: ServerState;
          try {
            decoded = decodeState(damaged);
          } catch {
            return;
          }
          // Number, time and memory are no part of the id; nothing else may differ.
          expect(decoded.plan!.id).toBe(state().plan!.id);
        },
      ),
      { numRuns: 500 },
    );
  });

  it.each([
    ['another format', { format: 2 }, /format is 2, this version reads 1/],
    ['a missing salt', { salt: undefined }, /salt/],
    ['a negative version', { snapshotVersion: -1 }, /\/snapshotVersion must be >= 0/],
    [
      'a version that none can follow',
      { snapshotVersion: Number.MAX_SAFE_INTEGER },
      /\/snapshotVersion must be <=/,
    ],
    [
      'a plan of a time that is no date',
      { plan: { ...JSON.parse(encodeState(state())).plan, createdAtMs: 9e15 } },
      /createdAtMs must be <=/,
    ],
    [
      'changed weights',
      { plan: { ...JSON.parse(encodeState(state())).plan, objectiveSeconds: 1 } },
      /its id/,
    ],
  ])('refuses %s and says where', (_, change, message) => {
    const stored = { ...JSON.parse(encodeState(state())), ...change };
    expect(() => decodeState(JSON.stringify(stored))).toThrow(message);
  });
});

describe('a file of another version', () => {
  const operations = {
    drains: [{ engineId: 'e0', address: null, sinceMs: 1, overSeconds: 30, untilMs: 9 }],
    orders: [],
    penalties: [],
    actions: [],
    roundTrips: [],
    sizes: [],
    rates: [],
    capacities: [],
  };
  const full = { ...state(), operations, discovered: [['e0', ['10.0.0.1:80']]] as const };
  // biome-ignore lint/suspicious/noExplicitAny: what another version writes
  type Stored = any;
  const written = (change: (stored: Stored) => void): string => {
    const stored = JSON.parse(encodeState(full));
    change(stored);
    return JSON.stringify(stored);
  };

  it('gives all that is as here, whatever is new in it', () => {
    const text = written((stored) => {
      stored.format = 2;
      stored.weather = { is: 'fine' };
      stored.plan.carbon = 1;
      stored.plan.id = '0123456789abcdef';
      stored.plan.rows[0].tenants = [];
      stored.plan.engines[0].watts = 700;
      stored.operations.moods = [{}];
      stored.operations.drains[0].reason = 'new';
      stored.operations.drains.push({ engineId: 'e1', address: { zone: 'z' } });
    });
    const { state: read, problem } = readState(text);
    expect(read).toEqual(full);
    expect(problem).toBe('its format is 2, this version reads 1. It is taken over but for drains');
  });

  it('of the same format with more in it is read as if that were not there', () => {
    const text = written((stored) => {
      stored.operations.moods = [];
      stored.plan.rows[1].tenants = 3;
    });
    const { state: read, problem } = readState(text);
    expect(read).toEqual(full);
    expect(problem).toMatch(
      /additional properties. It is taken over but for what this version does not know$/,
    );
  });

  it('gives partitions without loads and prices that are said otherwise', () => {
    const text = written((stored) => {
      stored.format = 2;
      stored.plan.engines = { e0: { load: 0.5 } };
      delete stored.plan.objectiveSeconds;
    });
    const { plan: read } = readState(text).state;
    expect(read!.rows).toEqual(full.plan!.rows);
    expect([read!.sequence, read!.engines]).toEqual([full.plan!.sequence, []]);
  });

  it.each<[string, (stored: Stored) => void]>([
    ['there is none', (stored) => delete stored.plan],
    ['a segment runs backwards', (stored) => (stored.plan.rows[0].segments[0][0] = 5)],
    ['rows are said otherwise', (stored) => (stored.plan.rows = 'elsewhere')],
    ['it is no plan', (stored) => (stored.plan = 7)],
  ])('gives its salt, but no plan when %s', (_, change) => {
    const text = written((stored) => {
      stored.format = 2;
      change(stored);
    });
    const { state: read, problem } = readState(text);
    expect([read.salt, read.plan, read.discovered]).toEqual([full.salt, null, full.discovered]);
    expect(problem).toMatch(/but for plan$/);
  });

  it.each([
    ...['{"format": 2}', '{"format": 2, "salt": ""}', '{"format": 2, "salt": 4}', '[]', 'null', ''],
    ...[1, 2].map((format) =>
      JSON.stringify({ format, snapshotVersion: 1, plan: null, salt: 'a'.repeat(257) }),
    ),
  ])('that has no salt which snapshots can have gives nothing (%#)', (text) =>
    expect(() => readState(text)).toThrow(),
  );

  it('never gives other partitions than were saved, whatever is damaged in it, nor another salt than the file has', () => {
    const text = encodeState(full);
    const partitionsOf = ({ rows }: Plan) => planId({ rows, engines: [], objectiveSeconds: 0 });
    const damage = fc.tuple(fc.nat(text.length - 2), fc.constantFrom('', '0', '9', '"', '}', 'x'));
    fc.assert(
      fc.property(damage, ([at, replacement]) => {
        const damaged = text.slice(0, at) + replacement + text.slice(at + 1);
        let read: ServerState;
        try {
          read = readState(damaged).state;
        } catch {
          return;
        }
        if (read.plan !== null) expect(partitionsOf(read.plan)).toBe(partitionsOf(full.plan!));
        expect(read.salt).toBe(JSON.parse(damaged).salt);
      }),
      { numRuns: 500 },
    );
  });
});

describe('StateFile', () => {
  let directory: string;
  let path: string;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'wardrop-state-'));
    path = join(directory, 'state.json');
  });

  afterEach(() => rm(directory, { recursive: true }));

  it('starts with nothing when there is no file', async () => {
    expect(await new StateFile(path).load()).toEqual({ state: null, problem: null });
  });

  it('loads what was saved, and leaves no other file behind', async () => {
    const file = new StateFile(path);
    await file.save(state());
    expect(await file.load()).toEqual({ state: state(), problem: null });
    expect(await readdir(directory)).toEqual(['state.json']);
  });

  it('lets nobody but its owner read the file: who knows the salt can aim keys at an engine', async () => {
    await new StateFile(path).save(state());
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it('writes the last of many states', async () => {
    const file = new StateFile(path);
    await Promise.all([1, 2, 3, 4, 5].map((version) => file.save(state(version))));
    expect((await file.load()).state!.snapshotVersion).toBe(5);
  });

  it('sets a broken file aside under a free name and says so', async () => {
    for (const text of ['{"format": 1', '{"format": 9}']) {
      await writeFile(path, text);
      const { state: loaded, problem } = await new StateFile(path).load();
      expect(loaded).toBeNull();
      expect(problem!.code).toBe('WARDROP_STATE_INVALID');
      expect(problem!.message).toContain(path);
    }
    expect((await readdir(directory)).sort()).toEqual(['state.json.broken', 'state.json.broken-2']);
    expect(await readFile(`${path}.broken`, 'utf8')).toBe('{"format": 1');
  });

  it('goes on with a file of another version, keeps a copy for that version, and says so', async () => {
    const newer = JSON.stringify({ ...JSON.parse(encodeState(state())), format: 2, more: 1 });
    await writeFile(path, newer);
    const file = new StateFile(path);
    const { state: loaded, problem } = await file.load();
    expect(loaded).toMatchObject(state());
    expect(problem!.message).toMatch(/format is 2.*kept as .*broken/);
    // Until the next save it is there to be read again.
    expect(await readFile(path, 'utf8')).toBe(newer);
    await file.save(state(4));
    expect(await file.load()).toEqual({ state: state(4), problem: null });
    expect(await readFile(`${path}.broken`, 'utf8')).toBe(newer);
  });

  it('notices that somebody else has written the file since it did, and not its own writes', async () => {
    const [one, other] = [new StateFile(path), new StateFile(path)];
    for (const version of [1, 2]) await one.save(state(version));
    await rm(path);
    await one.save(state(3));
    // One that takes over has written nothing yet.
    await other.save(state(4));
    expect(one.foundReplacedAtMs).toBeUndefined();
    expect(other.foundReplacedAtMs).toBeUndefined();
    await one.save(state(5));
    expect(one.foundReplacedAtMs).toBeTypeOf('number');
    expect((await one.load()).state!.snapshotVersion).toBe(5);
  });

  it('keeps what cannot be read under another name, as the next plan would replace it', async () => {
    await symlink('state.json', path);
    const { state: loaded, problem } = await new StateFile(path).load();
    expect(loaded).toBeNull();
    expect(problem!.message).toMatch(/cannot be read: ELOOP.*It is kept as .*broken\./);
    await new StateFile(path).save(state());
    expect((await readdir(directory)).sort()).toEqual(['state.json', 'state.json.broken']);
  });

  it('goes through a link to the file, also before that is there', async () => {
    await mkdir(join(directory, 'volume'));
    await symlink(join('volume', 'kept.json'), path);
    for (const version of [1, 2]) {
      await new StateFile(path).save(state(version));
      expect((await lstat(path)).isSymbolicLink()).toBe(true);
      const kept = await new StateFile(join(directory, 'volume', 'kept.json')).load();
      expect(kept.state!.snapshotVersion).toBe(version);
    }
    await writeFile(path, 'broken');
    await new StateFile(path).load();
    await new StateFile(path).save(state(3));
    expect((await readdir(join(directory, 'volume'))).sort()).toEqual(['kept.json', 'kept.json.broken']);
    expect((await readdir(directory)).sort()).toEqual(['state.json', 'volume']);
  });

  it('is whole after two servers have written it at the same time', async () => {
    const files = Array.from({ length: 20 }, () => new StateFile(path));
    for (const file of files) await file.save(state(1));
    await Promise.all(files.map((file, at) => file.save(state(at))));
    expect(await new StateFile(path).load()).toMatchObject({ problem: null });
    expect(await readdir(directory)).toEqual(['state.json']);
  });

  it('takes away what a server left that was killed while it wrote, and nothing else', async () => {
    for (const name of ['state.json.12345.tmp', 'state.json.0badcafe.tmp', 'state.json.mine.tmp', 'x.1.tmp'])
      await writeFile(join(directory, name), '{');
    await new StateFile(path).save(state());
    expect((await readdir(directory)).sort()).toEqual(['state.json', 'state.json.mine.tmp', 'x.1.tmp']);
  });

  it('leaves nothing behind when the file cannot be replaced', async () => {
    await mkdir(path);
    await expect(new StateFile(path).save(state())).rejects.toMatchObject({ code: 'WARDROP_STATE_INVALID' });
    expect(await readdir(directory)).toEqual(['state.json']);
  });

  it('reports a file that cannot be written, and writes again once it can', async () => {
    const file = new StateFile(join(directory, 'missing', 'state.json'));
    const saves = await Promise.allSettled([file.save(state(1)), file.save(state(2)), file.save(state(3))]);
    for (const save of saves) {
      expect(save).toMatchObject({ status: 'rejected', reason: { code: 'WARDROP_STATE_INVALID' } });
    }
    await mkdir(join(directory, 'missing'));
    await file.save(state(4));
    expect((await file.load()).state!.snapshotVersion).toBe(4);
  });
});
