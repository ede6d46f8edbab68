import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const CLI = fileURLToPath(new URL('../../dist/xds-server/cli/main.js', import.meta.url));

describe('the command line', () => {
  it('ends quietly when its reader has seen enough', async () => {
    const script = '{ "$0" "$1" schema; echo "status $?" >&2; } | true';
    const { stderr } = await promisify(execFile)('sh', ['-c', script, process.execPath, CLI]);
    expect(stderr).toBe('status 0\n');
  });
});
