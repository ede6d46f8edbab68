import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { CertificateAuthority } from '../../../test/conformance/certificates.js';
import { loadConfig } from '../../config/load.js';
import { RecordingWriter } from '../../control/recording/recording-writer.js';
import { Optimizer } from '../../optimizer/index.js';
import { makePlan } from '../../plan/make-plan.js';
import { Signals } from '../../signals/signals.js';
import { run } from '../run.js';
import { fixture, output } from '../testing/output.js';

const told = output();

describe('commands that ask nobody', () => {
  it('says which needs a model is refused with', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-validate-'));
    const file = join(folder, 'fleet.yaml');
    writeFileSync(
      file,
      `frontends: [{id: f, region: r}]
engines:
  - {id: a, region: r, models: [big, small], labels: {residency: eu}, endpoints: [127.0.0.1:1]}
  - {id: b, region: r, models: [big], labels: {residency: us}, endpoints: [127.0.0.1:2]}
needs:
  in-eu: {when: {path: /eu}, engines: {residency: eu}}
  in-us: {when: {path: /us}, engines: {residency: us}}
`,
    );
    expect(await run(['validate', '-c', file])).toBe(0);
    rmSync(folder, { recursive: true });
    expect(told.out).toContain('2 engines, 4 pools');
    expect(told.out).toContain(
      'big: 3 pools by 2 needs: in-eu, in-us\n  big: a, b\n  big~in-eu: a\n  big~in-us: b\nsmall',
    );
    expect(told.out).toMatch(
      /small: 1 pool by 1 need: in-us\n {2}small: a\n {2}refused, as no engine meets it: in-us\n$/,
    );
  });

  it('warns of a certificate that has ended', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-validate-'));
    const file = join(folder, 'fleet.yaml');
    writeFileSync(join(folder, 'ca.pem'), new CertificateAuthority(-0.01).certificate);
    writeFileSync(
      file,
      `frontends: [{id: f, region: r}]
engines:
  - {id: a, region: r, models: [m], endpoints: [127.0.0.1:1], tls: {sni: x, caFile: ca.pem}}
`,
    );
    expect(await run(['validate', '-c', file])).toBe(0);
    rmSync(folder, { recursive: true });
    expect(told.err).toMatch(/^warning: tls\.caFile of engine a has ended at /m);
  });

  it('says of each model what else it is called and who serves it, adapters too', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-validate-'));
    const file = join(folder, 'fleet.yaml');
    const validated = async (text: string) => {
      told.out = '';
      writeFileSync(file, `frontends: [{id: f, region: r}]\nengines:\n${text}`);
      expect(await run(['validate', '-c', file])).toBe(0);
      return told.out;
    };
    const needed = await validated(
      `  - {id: a, region: r, models: [base, adapter], labels: {context: long}, endpoints: [127.0.0.1:1]}
  - {id: b, region: r, models: [base], labels: {context: short}, endpoints: [127.0.0.1:2]}
needs:
  long: {when: {promptTokens: 16000}, engines: {context: long}}
aliases: {gpt: base, legal: adapter, law: adapter}
`,
    );
    expect(needed).toContain('\nadapter (also law, legal): a\n');
    expect(needed).toContain('\nbase (also gpt): 2 pools by 1 need: long\n  base: a, b\n  base~long: a\n');
    const many = Array.from(
      { length: 21 },
      (_, i) => `  - {id: e${i}, region: r, models: [wide], endpoints: []}`,
    );
    expect(await validated(many.join('\n'))).toContain('\nwide: 21 engines\n');
    rmSync(folder, { recursive: true });
  });

  it('solves a configuration offline', async () => {
    const file = fixture('over-demand.yaml');
    expect(await run(['solve', '--offline', '-c', file, '--without', 'engine=e2', '--json'])).toBe(0);
    const { rows } = JSON.parse(told.out) as { rows: { refusedRps: { before: number; after: number } }[] };
    expect(rows[0]!.refusedRps.before).toBeCloseTo(10, 0);
    expect(rows[0]!.refusedRps.after).toBeCloseTo(20, 0);
    expect(await run(['solve', '--offline', '-c', file, '--without', 'engine=e9'])).toBe(2);
    expect(told.err).toContain('unknown engine "e9"; known: e1, e2');
  });

  it('explains a weight offline', async () => {
    const args = ['explain', '--offline', '-c', fixture('over-demand.yaml'), '--frontend', 'f1'];
    expect(await run([...args, '--engine', 'e2'])).toBe(0);
    expect(told.out).toMatch(/^f1 → e2, pool acme-chat-8b: weight \d/);
    expect(told.out).toContain('Demand above capacity: of 30.0 requests/s');
    expect(await run([...args, '--engine', 'e3'])).toBe(2);
    expect(told.err).toContain('unknown engine "e3"; known: e1, e2');
  });

  it('says that a recording without solves is nothing to replay', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-replay-'));
    const file = join(folder, 'empty.jsonl.gz');
    writeFileSync(file, gzipSync('{"wardropRecording":1}\n'));
    expect(await run(['replay', file])).toBe(1);
    rmSync(folder, { recursive: true });
    expect(told.err).toContain('holds no solve');
  });

  it('shows what a recording holds before the place where it is damaged', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-replay-'));
    const file = join(folder, 'damaged.jsonl.gz');
    const config = loadConfig(fixture('three-regions.yaml'));
    const { state } = new Signals(config, [], 0).evaluate(1_000);
    const { profiles, policy } = config;
    const input = { previous: null, state, profiles, policy };
    const optimizer = new Optimizer();
    const { plan } = await makePlan(optimizer, input, () => 1_000);
    await optimizer.close();
    const lines = [...new RecordingWriter().lines({ kind: 'solve', input, times: [1_000], plan })];
    writeFileSync(file, gzipSync(`${lines.join('')}{"kind":"so`));
    expect(await run(['replay', file])).toBe(1);
    rmSync(folder, { recursive: true });
    expect(told.out).toMatch(/1970-01-01T00:00:01.000Z .* same /);
    expect(told.err).toContain('line 3 of the recording is no JSON');
  });
});
