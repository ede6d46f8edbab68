import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ConfigWatch } from './config-watch.js';

describe('a watch of configuration files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'wardrop-watch-'));
  const [main, other] = [join(folder, 'main'), join(folder, 'other')];
  let watch: ConfigWatch;
  /** Lets the watch look, by a clock that the test moves, until this is so. */
  const looksUntil = async (isSo: () => boolean) => {
    while (!isSo()) {
      await vi.advanceTimersByTimeAsync(1_000);
      await new Promise(setImmediate);
    }
  };
  const looksOnceMore = async () => {
    await vi.advanceTimersByTimeAsync(1_000);
    await watch.stop();
  };
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    watch = new ConfigWatch();
    for (const file of [main, other]) writeFileSync(file, 'one');
  });
  afterAll(() => rmSync(folder, { recursive: true }));
  afterEach(async () => {
    await watch.stop();
    vi.useRealTimers();
  });

  it('sees that a file holds again what it held before it was read in the midst of changes', async () => {
    watch.reading()(main);
    const loaded: string[] = [];
    watch.start(async () => {
      // Seen with three, read with two, and then there is three again.
      if (loaded.length === 0) writeFileSync(main, 'two');
      loaded.push(watch.reading()(main));
      writeFileSync(main, 'three');
    });
    writeFileSync(main, 'three');
    await looksUntil(() => loaded.length === 2);
    expect(loaded).toEqual(['two', 'three']);
    await looksOnceMore();
    expect(loaded).toHaveLength(2);
  });

  it('waits while somebody writes: half of a file may be valid and mean something else', async () => {
    const written = join(folder, 'written');
    writeFileSync(written, 'one');
    watch.reading()(written);
    const loaded: string[] = [];
    watch.start(async () => void loaded.push(watch.reading()(written)));
    // This one is another one whenever it is read.
    rmSync(written);
    symlinkSync('/proc/sys/kernel/random/uuid', written);
    for (let look = 0; look < 20; look++) {
      await vi.advanceTimersByTimeAsync(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(loaded).toEqual([]);
    rmSync(written);
    writeFileSync(written, 'two');
    await looksUntil(() => loaded.length === 1);
    expect(loaded).toEqual(['two']);
  });

  it('looks at the files of the last load, also of one that failed, and at no others', async () => {
    const missing = join(folder, 'missing');
    const load = vi.fn(async () => {
      const read = watch.reading();
      read(main);
      expect(() => read(missing)).toThrow();
    });
    const read = watch.reading();
    read(main);
    read(other);
    watch.start(load);
    writeFileSync(other, 'two');
    await looksUntil(() => load.mock.calls.length === 1);
    load.mockImplementation(async () => void watch.reading()(main));
    writeFileSync(missing, 'here now');
    await looksUntil(() => load.mock.calls.length === 2);
    writeFileSync(other, 'three');
    await looksOnceMore();
    expect(load).toHaveBeenCalledTimes(2);
  });
});
