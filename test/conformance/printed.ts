import { expect, vi } from 'vitest';
import { run } from '../../xds-server/cli/run.js';

/** What a command line that succeeds prints, run in this process. */
export async function printed(...args: readonly string[]): Promise<string> {
  const log = vi.spyOn(console, 'log').mockReturnValue(undefined);
  try {
    expect(await run(args)).toBe(0);
    return log.mock.calls.map(([line]) => `${line}\n`).join('');
  } finally {
    log.mockRestore();
  }
}
