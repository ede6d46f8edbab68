import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PATIENCE_MS } from '../../../test/patience.js';
import { noVmUsage } from '../../../wire/usage-report.js';
import { loadConfig } from '../../config/load.js';
import type { WardropError } from '../../errors.js';
import type { FleetState } from '../../fleet/fleet-state.js';
import { readRecording } from './read-recording.js';
import { RecordedSignals } from './recorded-signals.js';
import { Recorders } from './recorders.js';
import type { Recorded } from './recording.js';
import { RecordingSet } from './recording-set.js';
import { SignalsReplay } from './signals-replay.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wardrop-recording-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const config = loadConfig('/none/fleet.yaml', () =>
  [
    'frontends: [{id: f, region: r}]',
    'engines:',
    '- {id: a, region: r, models: [m], profile: p, endpoints: ["10.0.0.1:80"]}',
    '- {id: b, region: r, models: [m], profile: p, endpoints: ["10.0.0.2:80"]}',
    'profiles: {p: {requestsPerSecond: 10}}',
  ].join('\n'),
);

const START_MS = Date.UTC(2026, 0, 31, 3, 12);
const FIRST = 'fleet-20260131T031200000Z.jsonl.gz';
const name = () => join(folder, 'fleet.jsonl.gz');
const faults: WardropError[] = [];

function options(nowMs: number) {
  faults.length = 0;
  return {
    name: name(),
    mostBytes: 1_000,
    mostFiles: 3,
    now: () => nowMs,
    onFault: (error: WardropError) => faults.push(error),
  };
}

function setAt(
  nowMs: number,
  change: { mostBytes?: number; mostFiles?: number; name?: string } = {},
  hasBegun = true,
) {
  const set = new RecordingSet({ ...options(nowMs), ...change });
  if (hasBegun) set.begin();
  return {
    begin: () => set.begin(),
    close: () => set.close(),
    write: (recorded: Recorded) => set.write(recorded, () => KNOWN),
  };
}

/** What each file but the first begins with. */
const KNOWN: Recorded = { kind: 'hold-up', atMs: -1 };

/** Hard to compress. */
function reportOf(sequence: number, size = 20): Recorded {
  const vms = Array.from({ length: size }, (_, index) =>
    noVmUsage(BigInt.asUintN(64, BigInt(sequence * size + index) * 0x9e3779b97f4a7c15n), sequence),
  );
  return { kind: 'report', atMs: sequence, frontendId: 'f', nodeId: 'n', report: { vms } };
}

/** The newest file of the set. */
function newest(): string | undefined {
  return readdirSync(folder)
    .filter((file) => /^fleet-\d/.test(file))
    .sort()
    .at(-1);
}

function newestSize(): number {
  const file = newest();
  return file === undefined ? 0 : statSync(join(folder, file)).size;
}

async function timesIn(file: string): Promise<number[]> {
  const times: number[] = [];
  for await (const { atMs } of readRecording(file) as AsyncIterable<{ atMs: number }>) times.push(atMs);
  return times;
}

describe('a recording in files', () => {
  it('begins a new file at every start and is read in the order of writing', async () => {
    for (const [run, atMs] of [START_MS, START_MS + 1, START_MS + 86_400_000].entries()) {
      const set = setAt(atMs);
      set.write(reportOf(run + 1));
      await set.close();
    }
    expect(readdirSync(folder).sort()).toEqual([
      FIRST,
      'fleet-20260131T031200001Z.jsonl.gz',
      'fleet-20260201T031200000Z.jsonl.gz',
    ]);
    expect(await timesIn(name())).toEqual([1, 2, 3]);
    expect(await timesIn(join(folder, FIRST))).toEqual([1]);
  });

  it('goes on with another file when one is full, and keeps only so many', async () => {
    writeFileSync(join(folder, 'fleet-notes.jsonl.gz'), 'not one of them');
    const set = setAt(START_MS);
    const begun = new Set<string | undefined>();
    let sequence = 0;
    while (begun.size < 8) {
      set.write(reportOf(++sequence, 3_000));
      // The file is there, and the compressed bytes in it, a little later; the set may know it later still.
      await vi.waitUntil(() => newestSize() >= 1_000, PATIENCE_MS);
      begun.add(newest());
      await new Promise((resolve) => setImmediate(resolve));
    }
    await set.close();
    const files = readdirSync(folder).sort();
    expect(files).toHaveLength(4);
    expect(files).toContain('fleet-notes.jsonl.gz');
    for (const file of files.filter((each) => /fleet-\d/.test(each)))
      expect((await timesIn(join(folder, file)))[0]).toBe(KNOWN.atMs);
    const times = (await timesIn(name())).filter((atMs) => atMs !== KNOWN.atMs);
    expect(times.at(-1)).toBe(sequence);
    expect(times).toEqual(Array.from(times, (_, index) => times[0]! + index));
    expect(faults).toEqual([]);
  });

  it('goes on with what signals know, so that each file can be replayed alone', async () => {
    const set = new RecordingSet({ ...options(START_MS), mostFiles: 100 });
    set.begin();
    let atMs = 0;
    const recorders = new Recorders(
      (recorded, known) => set.write(recorded, known),
      () => signals.known(atMs),
    );
    const signals = new RecordedSignals(config, [], 0, (signal) => recorders.record(signal));
    const states = new Map<number, FleetState>();
    const begun = new Set<string | undefined>();
    while (begun.size < 4) {
      atMs += 700;
      const detail = randomBytes(20_000).toString('hex');
      const result = { ok: false, kind: atMs % 2_100 === 0 ? 'refused' : 'timeout', detail } as const;
      signals.acceptProbe('a', '10.0.0.1:80', atMs % 2_800 === 0 ? { ok: true } : result, atMs);
      states.set(atMs, signals.evaluate(atMs).state);
      recorders.record({ kind: 'plan', atMs });
      await new Promise((resolve) => setTimeout(resolve, 10));
      begun.add(newest());
    }
    await set.close();
    for (const file of readdirSync(folder)) {
      const replay = new SignalsReplay();
      let plans = 0;
      for await (const recorded of readRecording(join(folder, file))) {
        if (recorded.kind === 'solve') continue;
        replay.accept(recorded);
        if (recorded.kind !== 'plan') continue;
        // A file may begin between a look and its plan.
        const isSame = replay.isSame(states.get(recorded.atMs)!);
        expect(isSame).toBe(plans++ === 0 ? (isSame ?? undefined) : true);
      }
      expect(plans).toBeGreaterThan(0);
    }
    expect(faults).toEqual([]);
  });

  it('is on the disk within seconds, for the case that the control server is killed', async () => {
    const set = setAt(START_MS);
    set.write(reportOf(1));
    set.write(reportOf(2));
    await vi.waitUntil(() => newestSize() > 100, PATIENCE_MS);
    expect(await timesIn(name())).toEqual([1, 2]);
    await set.close();
    expect(await timesIn(name())).toEqual([1, 2]);
  });

  it('ends at the last whole line of a file that was cut off anywhere', async () => {
    const set = setAt(START_MS);
    for (let sequence = 1; sequence <= 5; sequence++) set.write(reportOf(sequence));
    await set.close();
    const whole = readFileSync(join(folder, FIRST));
    for (const share of [0, 0.001, 0.3, 0.6, 0.99]) {
      writeFileSync(join(folder, FIRST), whole.subarray(0, Math.floor(share * whole.length)));
      const times = await timesIn(name());
      expect(times).toEqual([1, 2, 3, 4, 5].slice(0, times.length));
      expect(times.length).toBeLessThan(5);
    }
  });

  it('is refused when it is damaged or not there', async () => {
    await expect(timesIn(name())).rejects.toMatchObject({ code: 'WARDROP_RECORDING_INVALID' });
    writeFileSync(name(), 'no gzip');
    await expect(timesIn(name())).rejects.toMatchObject({ code: 'WARDROP_RECORDING_INVALID' });
    writeFileSync(name(), gzipSync('{"some":"thing"}\n'));
    await expect(timesIn(name())).rejects.toMatchObject({ code: 'WARDROP_RECORDING_INVALID' });
  });

  it('is read line by line as JSON means it, whatever else looks like the end of a line', async () => {
    const set = setAt(START_MS);
    set.write({ ...reportOf(1), nodeId: 'a\u2028b\u2029c\r\nd' } as Recorded);
    set.write(reportOf(2));
    await set.close();
    expect(await timesIn(name())).toEqual([1, 2]);
  });

  it('touches no file before it begins, and then writes what came before', async () => {
    for (let run = 0; run < 3; run++) {
      const set = setAt(START_MS + run);
      set.write(reportOf(run));
      await set.close();
    }
    const before = readdirSync(folder);
    const failed = setAt(START_MS + 10, {}, false);
    failed.write(reportOf(10));
    await failed.close();
    expect(readdirSync(folder)).toEqual(before);
    const set = setAt(START_MS + 20, {}, false);
    set.write(reportOf(20));
    set.begin();
    set.write(reportOf(21));
    await set.close();
    expect(await timesIn(name())).toEqual([1, 2, 20, 21]);
  });

  it('of another version is refused by name, and says so', async () => {
    const set = setAt(START_MS);
    const bytes = Buffer.from('not a report of this version').toString('base64');
    set.write({ kind: 'report', atMs: 1, frontendId: 'f', nodeId: 'n', bytes } as unknown as Recorded);
    await set.close();
    await expect(timesIn(name())).rejects.toMatchObject({
      code: 'WARDROP_RECORDING_INVALID',
      message: expect.stringMatching(/fleet-20260131T031200000Z.*line 2 .* another version/),
    });
  });

  it('says once that it cannot be written, and ends', async () => {
    const set = setAt(START_MS, { name: join(folder, 'nowhere', 'fleet.jsonl.gz') });
    set.write(reportOf(1));
    await set.close();
    expect(faults.map(({ code }) => code)).toEqual(['WARDROP_OUTPUT_FAILED']);
  });

  it('never writes over a file', async () => {
    writeFileSync(join(folder, FIRST), 'somebody else’s');
    const set = setAt(START_MS);
    set.write(reportOf(1));
    await set.close();
    expect(faults.map(({ code }) => code)).toEqual(['WARDROP_OUTPUT_FAILED']);
    expect(readFileSync(join(folder, FIRST), 'utf8')).toBe('somebody else’s');
  });
});
