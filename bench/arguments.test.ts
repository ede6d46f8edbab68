import { afterEach, describe, expect, it, vi } from 'vitest';
import { readArguments } from './arguments.js';

const argv = process.argv;

/** Exit status and what was said, or what was read. */
function read(...given: string[]): unknown {
  process.argv = ['node', 'main.js', ...given];
  const said: string[] = [];
  for (const stream of ['log', 'error'] as const) {
    vi.spyOn(console, stream).mockImplementation((text: string) => said.push(text));
  }
  vi.spyOn(process, 'exit').mockImplementation((status) => {
    throw { status, said };
  });
  try {
    return { ...readArguments('some', { seed: 'N' }) };
  } catch (ended) {
    return ended;
  }
}

describe('readArguments', () => {
  afterEach(() => {
    process.argv = argv;
    vi.restoreAllMocks();
  });

  const usage = 'usage: npm run bench -- some [--quick] [--seed N] [--json FILE]';

  it('reads what every benchmark takes, and what this one does', () => {
    expect(read('--json', 'f')).toEqual({ quick: false, json: 'f' });
    expect(read('--quick', '--seed', '3')).toEqual({ quick: true, seed: '3' });
  });

  it('says how it is used when asked, and what is wrong otherwise', () => {
    expect(read('--help')).toEqual({ status: 0, said: [usage] });
    expect(read('--seeds')).toEqual({ status: 2, said: [`Unknown option '--seeds'\n${usage}`] });
  });
});
