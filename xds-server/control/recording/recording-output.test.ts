import { PassThrough, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { PATIENCE_MS } from '../../../test/patience.js';
import { loadConfig } from '../../config/load.js';
import { exactJson } from '../../exact-json.js';
import { RecordedSignals } from './recorded-signals.js';
import type { Recorded } from './recording.js';
import { RecordingOutput } from './recording-output.js';
import { RecordingReader } from './recording-reader.js';
import { RecordingWriter } from './recording-writer.js';

const config = loadConfig('/none/fleet.yaml', () =>
  [
    'frontends: [{id: f, region: r}]',
    'engines:',
    '- {id: a, region: r, models: [m], profile: p, endpoints: ["10.0.0.1:80"]}',
    'profiles: {p: {requestsPerSecond: 10}}',
  ].join('\n'),
);

/** What signals know of so many replicas, most of which the configuration does not have. */
function known(replicas: number) {
  const signals = new RecordedSignals(config, [], 0, () => {});
  for (let at = 0; at < replicas; at++) {
    signals.acceptProbe('a', `10.0.0.1:${at}`, { ok: false, kind: 'status', detail: 'x'.repeat(2_000) }, at);
  }
  return signals.known(0);
}

function evaluated(atMs: number): Recorded {
  return { kind: 'evaluate', atMs };
}

function linesOf(list: readonly Recorded[]): string {
  const writer = new RecordingWriter();
  return list.flatMap((recorded) => [...writer.lines(recorded)]).join('');
}

describe('the output of a recording', () => {
  it('is in order and complete, although a long beginning is written between other work', async () => {
    const beginning = known(20_000);
    const stream = new PassThrough({ highWaterMark: 1 });
    const output = new RecordingOutput(stream);
    output.write(beginning);
    output.write(evaluated(1));
    expect(stream.writableLength + stream.readableLength).toBeLessThan(20_000 * 2_000);
    const written = text(stream);
    await nextTurn();
    output.write(evaluated(2));
    output.end();
    output.write(evaluated(3));
    expect((await written) === linesOf([beginning, evaluated(1), evaluated(2)])).toBe(true);
  });

  it('has more once what has happened is longer than its beginning', async () => {
    const output = new RecordingOutput(new PassThrough());
    output.write(known(1));
    expect(output.hasMore).toBe(false);
    for (let atMs = 0; atMs < 200; atMs++) output.write(evaluated(atMs));
    await vi.waitUntil(() => output.hasMore, PATIENCE_MS);
  });

  it('is given up when nobody takes it', async () => {
    const stuck = new Writable({ write: () => {} });
    const errors: string[] = [];
    stuck.on('error', ({ message }) => errors.push(message));
    const output = new RecordingOutput(stuck);
    const detail = 'x'.repeat(10 * 1024 * 1024);
    for (let atMs = 0; atMs < 10; atMs++) {
      const result = { ok: false, kind: 'status', detail } as const;
      output.write({ kind: 'probe', atMs, engineId: 'a', address: '10.0.0.1:80', result });
    }
    await nextTurn();
    while (!stuck.destroyed) await nextTurn();
    await nextTurn();
    expect(errors).toEqual([expect.stringMatching(/^writing is behind by/)]);
  });

  it('holds no beginning that was cut off', () => {
    const lines = linesOf([known(200)])
      .trimEnd()
      .split('\n');
    const reader = new RecordingReader();
    expect(lines.length).toBeGreaterThan(3);
    expect(lines.slice(0, -1).map((line) => reader.read(line))).toEqual(lines.slice(1).map(() => undefined));
    const { saved } = known(200);
    expect(exactJson(reader.read(lines.at(-1)!))).toContain(exactJson(saved));
  });
});
