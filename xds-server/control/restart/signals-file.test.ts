import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Signals } from '../../signals/signals.js';
import { lifeConfig } from '../../signals/testing/life.js';
import { SignalsFile } from './signals-file.js';

const config = lifeConfig(20);
const atMs = 1_700_000_000_000;
const saved = () => new Signals(config, [], atMs).save();

describe('what signals knew when a control server stopped', () => {
  let folder: string;
  let stateFile: string;
  let file: SignalsFile;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'wardrop-signals-'));
    stateFile = join(folder, 'state.json');
    file = new SignalsFile(stateFile);
    await file.leave(config, { atMs, saved: saved() });
  });

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('is there for the next start, once', async () => {
    expect(await file.take(config, atMs + 5_000)).toEqual({ atMs, saved: saved() });
    expect(existsSync(`${stateFile}.signals`)).toBe(false);
    expect(await file.take(config, atMs + 6_000)).toBeUndefined();
  });

  it('says which file cannot be written', async () => {
    const other = new SignalsFile(join(folder, 'missing', 'state.json'));
    await expect(other.leave(config, { atMs, saved: saved() })).rejects.toMatchObject({
      code: 'WARDROP_STATE_INVALID',
      message: expect.stringMatching(/missing\/state\.json\.signals cannot be written: no such file/),
    });
  });

  it.each([
    ['a minute later', atMs + 60_000, config],
    ['by a clock that was set back', atMs - 1, config],
    ['for another configuration', atMs + 1_000, lifeConfig(20, 3)],
  ])('is nothing to go on with %s', async (_, nowMs, other) => {
    expect(await file.take(other, nowMs)).toBeUndefined();
  });

  it.each([
    ['a byte is another one', (text: string) => text.replace('"unrestMs"', '"unrestMz"')],
    ['it breaks off', (text: string) => text.slice(0, -9)],
    ['it is empty', () => ''],
    ['another version wrote it', (text: string) => text.replace(/"format":\d+/, '"format":0')],
    [
      'its reports are of other filters',
      (text: string) => text.replace(/"reportFormat":\d+/, '"reportFormat":0'),
    ],
  ])('is nothing to go on with when %s', async (_, damage) => {
    const path = `${stateFile}.signals`;
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, damage(text));
    expect(readFileSync(path, 'utf8')).not.toBe(text);
    expect(await file.take(config, atMs + 1_000)).toBeUndefined();
  });
});
