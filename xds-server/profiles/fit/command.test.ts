import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { loadConfig } from '../../config/load.js';
import { registerFit, runFit } from './command.js';

const data = (name: string) => fileURLToPath(new URL(`../data/${name}`, import.meta.url));
const sweepFile = data('samples/vllm-bench-serve.jsonl');

let folder: string;
let printed: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wardrop-fit-'));
  printed = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
});

afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

async function wardrop(...args: string[]): Promise<void> {
  const program = new Command('wardrop').exitOverride().configureOutput({ writeErr: () => {} });
  registerFit(program);
  for (const command of program.commands) command.exitOverride().configureOutput({ writeErr: () => {} });
  await program.parseAsync(['fit', ...args], { from: 'user' });
}

describe('wardrop fit', () => {
  it('writes a profile that the configuration takes as it is', async () => {
    const out = join(folder, 'profile.yaml');
    await wardrop(sweepFile, '--id', 'h100-8b', '--out', out);
    const text = readFileSync(out, 'utf8');
    const config = `frontends: [{id: f, region: r}]
engines: [{id: e, region: r, models: [m], profile: h100-8b, endpoints: ["127.0.0.1:9101"]}]
${text}`;
    const profile = loadConfig('wardrop.yaml', () => config).profiles.get('h100-8b')!;
    const { profile: fitted } = await runFit({ files: [sweepFile], id: 'h100-8b' });
    expect(profile.work.secondsPerRequest / fitted!.work.secondsPerRequest).toBeCloseTo(1, 5);
    expect(profile.ttft.queueSeconds / fitted!.ttft.queueSeconds).toBeCloseTo(1, 5);
    expect(profile.tbot.kappa).toBeCloseTo(fitted!.tbot.kappa, 5);
    expect(profile.maxFittedRho).toBeCloseTo(fitted!.maxFittedRho, 5);
    expect(text).toMatch(/^# Fitted from vllm-bench-serve.jsonl\n# closed-loop: /);
    expect(printed).not.toContain('profiles:');
  });

  it('prints the report, and the profile when no file is named for it', async () => {
    await wardrop(sweepFile);
    expect(printed).toMatch(/^Profile vllm-bench-serve\n {2}capacity {2}173 requests\/s a replica \(/);
    expect(printed).toMatch(/TTFT {6}27\.95 ms \+ 1\.285 ms \* rho \/ \(1 - rho\) {3}\[/);
    expect(printed).toMatch(/vllm-bench-serve\.jsonl:7 +unpaced .* closed-loop\n/);
    expect(printed).toMatch(/\nWarnings\n {2}closed-loop: .*\.\n {2}one-size: /);
    expect(printed).toContain('\nprofiles:\n  vllm-bench-serve:\n    work:\n');
  });

  it('fits several files as one sweep', async () => {
    const parts = [data('samples/profile_export_aiperf.json'), sweepFile];
    const { stages, profile } = await runFit({ files: parts });
    expect(profile!.id).toBe('profile_export_aiperf');
    expect(stages).toHaveLength(8);
  });

  it('chooses rows of a CSV', async () => {
    const table = data('kubecon2025-llama31-8b-h100.csv');
    await wardrop(
      table,
      '--where',
      'config=vllm+quantization',
      '--where',
      'stage=0',
      '--where',
      'n=60',
    ).catch(() => {});
    expect(printed.split('\n').filter((line) => line.includes('.csv:'))).toHaveLength(1);
  });

  it('draws every stage with finite coordinates, escaped', async () => {
    const svg = join(folder, 'fit.svg');
    const html = join(folder, 'fit.html');
    await runFit({ files: [sweepFile], svg, html });
    const drawing = readFileSync(svg, 'utf8');
    expect(drawing).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" viewBox=/);
    expect(drawing.match(/<circle /g)).toHaveLength(10);
    expect(drawing).not.toMatch(/NaN|Infinity|undefined/);
    expect(drawing).toContain('not drawn, as above capacity or out of scale: 2');
    const page = readFileSync(html, 'utf8');
    expect(page).toContain(drawing);
    expect(page).toContain('Profile vllm-bench-serve');
    expect(page).not.toMatch(/(src|href)=/);
  });

  it('draws no closed-loop stage, as it has no utilisation, and says how many there are', async () => {
    const svg = join(folder, 'fit.svg');
    await runFit({ files: [data('inferencex-glm5-fp8-h200x8.csv')], svg });
    const drawing = readFileSync(svg, 'utf8');
    expect(drawing).not.toMatch(/<circle |NaN|Infinity/);
    expect(drawing).toContain('out of scale: 36');
  });

  it('fails with the report printed and nothing written when the data carry no profile', async () => {
    const out = join(folder, 'profile.yaml');
    await expect(wardrop(data('inferencex-glm5-fp8-h200x8.csv'), '--out', out)).rejects.toMatchObject({
      code: 'WARDROP_BENCHMARK_INVALID',
    });
    expect(printed).toContain('closed-loop: 36 of 36 stages');
    expect(() => readFileSync(out)).toThrow();
  });

  it('refuses bad options, ids and paths with a reason', async () => {
    await expect(wardrop(sweepFile, '--replicas', '0')).rejects.toThrow(/whole number above 0/);
    await expect(wardrop(sweepFile, '--where', 'config')).rejects.toThrow(/expected column=value/);
    await expect(wardrop(sweepFile, '--id', 'two words')).rejects.toThrow(
      /"two words" cannot be a profile id/,
    );
    await expect(runFit({ files: [join(folder, 'none.json')] })).rejects.toThrow(/none.json: cannot be read/);
    await expect(runFit({ files: [sweepFile], svg: join(folder, 'no', 'x.svg') })).rejects.toMatchObject({
      code: 'WARDROP_OUTPUT_FAILED',
    });
  });
});
