import { readFileSync } from 'node:fs';

/** What V8 reserves of the address space for a wasm memory: used pages first, the rest unusable. */
const RESERVED_BYTES = 2 ** 33;

/** Bytes of each wasm memory in a process, as its address space shows them. */
export function linearMemories(pid: number): number[] {
  return memoriesIn(readFileSync(`/proc/${pid}/maps`, 'utf8'));
}

export function memoriesIn(maps: string): number[] {
  const found: number[] = [];
  let writableFrom = 0;
  let writableTo = 0;
  for (const line of maps.split('\n')) {
    const match = /^([0-9a-f]+)-([0-9a-f]+) (\S+)/.exec(line);
    if (!match) continue;
    const from = Number.parseInt(match[1]!, 16);
    const to = Number.parseInt(match[2]!, 16);
    if (match[3]!.startsWith('rw')) {
      [writableFrom, writableTo] = [from, to];
    } else if (match[3]!.startsWith('---') && writableTo === from) {
      const start = to - RESERVED_BYTES;
      if (start >= writableFrom && start < from) found.push(from - start);
    }
  }
  return found;
}
