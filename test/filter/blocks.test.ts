import fc from 'fast-check';
import { expect, it } from 'vitest';
import { partModule } from '../../simulator/filter-host/build.js';

const module = partModule('blocks', 'abi/blocks.ts');

interface Blocks {
  readonly memory: WebAssembly.Memory;
  allocate(size: number): number;
  release(at: number, size: number): void;
}

function start(): Blocks {
  const imports = { env: { abort: () => {} } };
  return new WebAssembly.Instance(module, imports).exports as unknown as Blocks;
}

const sizes = fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 200_000 }));
/** Takes a block, or gives one back: the one at this place among those taken. */
const steps = fc.array(fc.record({ size: sizes, back: fc.option(fc.nat(), { freq: 2 }) }), { maxLength: 60 });

it('blocks keep what was written to them until they are given back, whatever comes and goes beside them', () => {
  fc.assert(
    fc.property(steps, (sequence) => {
      const blocks = start();
      const bytes = (at: number, size: number) => new Uint8Array(blocks.memory.buffer, at, size);
      const taken: { at: number; size: number; mark: number }[] = [];
      for (const [index, { size, back }] of sequence.entries()) {
        if (back !== null && taken.length > 0) {
          const [block] = taken.splice(back % taken.length, 1);
          expect(bytes(block!.at, block!.size).every((byte) => byte === block!.mark)).toBe(true);
          blocks.release(block!.at, block!.size);
        } else {
          const at = blocks.allocate(size);
          expect(at % 16).toBe(0);
          bytes(at, size).fill(index + 1);
          taken.push({ at, size, mark: index + 1 });
        }
      }
      for (const { at, size, mark } of taken)
        expect(bytes(at, size).every((byte) => byte === mark)).toBe(true);
    }),
    { numRuns: 200 },
  );
});

it('what was given back is one block again, in whatever order it comes back', () => {
  fc.assert(
    fc.property(
      fc.array(sizes, { minLength: 1, maxLength: 30 }).chain((list) =>
        fc.tuple(
          fc.constant(list),
          fc.shuffledSubarray(
            list.map((_, index) => index),
            { minLength: list.length },
          ),
        ),
      ),
      ([list, order]) => {
        const blocks = start();
        const places = list.map((size) => blocks.allocate(size));
        for (const index of order) blocks.release(places[index]!, list[index]!);
        const before = blocks.memory.buffer.byteLength;
        expect(blocks.allocate(list.reduce((sum, size) => sum + size, 0))).toBe(places[0]);
        expect(blocks.memory.buffer.byteLength).toBe(before);
      },
    ),
    { numRuns: 200 },
  );
});

it('the memory grows by the pages that are missing', () => {
  const blocks = start();
  const before = blocks.memory.buffer.byteLength;
  for (let i = 0; i < 10; i++) blocks.allocate(300_000);
  expect(blocks.memory.buffer.byteLength - before).toBeLessThanOrEqual(3_000_000 + 2 * 65_536);
});
