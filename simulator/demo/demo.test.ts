import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEFAULT_BASE_PORT } from './addresses.js';
import { runDemo } from './demo.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wardrop-result-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function run(json: string): Promise<unknown> {
  const options = {
    keep: false,
    seconds: 1,
    basePort: DEFAULT_BASE_PORT,
    envoyBinary: process.execPath,
    json,
  };
  return runDemo(options, new AbortController());
}

describe('runDemo', () => {
  it('says before it starts that the result cannot be written: into a folder that is not there', async () => {
    await expect(run(join(folder, 'none', 'result.json'))).rejects.toMatchObject({
      code: 'WARDROP_OUTPUT_FAILED',
      message: expect.stringContaining('result.json'),
    });
  });

  it('says before it starts that the result cannot be written: over a folder', async () => {
    await expect(run(folder)).rejects.toMatchObject({
      code: 'WARDROP_OUTPUT_FAILED',
      message: expect.stringContaining('it is a folder'),
    });
  });
});
